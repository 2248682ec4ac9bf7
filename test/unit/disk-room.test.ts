import { mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, it, vi } from 'vitest';
import { MIB } from '../../shared/bytes.js';
import { silentLogger } from '../../shared/logger.js';
import { FULL_BELOW_BYTES, RESERVE_BYTES, STEP_BYTES, decideRoom } from '../../control-plane/domain/disk-room.js';
import { DiskRoom } from '../../control-plane/store/disk-room.js';

const whole = { reserveBytes: RESERVE_BYTES, wantedBytes: RESERVE_BYTES, isFull: false };

it.each([
  ['enough is free', { ...whole, freeBytes: 100 * MIB }, { isFull: false, reserve: 'keep' }],
  ['little is free', { ...whole, freeBytes: 7 * MIB }, { isFull: true, reserve: 'release' }],
  ['nothing is left in reserve', { ...whole, freeBytes: 0, reserveBytes: 0 }, { isFull: true, reserve: 'keep' }],
  ['a step was freed', { ...whole, freeBytes: 11 * MIB, isFull: true }, { isFull: true, reserve: 'keep' }],
  ['there is some room again', { ...whole, freeBytes: 16 * MIB, isFull: true }, { isFull: false, reserve: 'keep' }],
  ['a step is missing', { ...whole, freeBytes: 36 * MIB, reserveBytes: 60 * MIB }, { isFull: false, reserve: 'grow' }],
  ['too little for it', { ...whole, freeBytes: 95 * MIB, reserveBytes: 0 }, { isFull: false, reserve: 'keep' }],
  ['no reserve is wanted', { ...whole, freeBytes: 9 * MIB, wantedBytes: 0 }, { isFull: false, reserve: 'keep' }],
  ['what is free is unknown', { ...whole, freeBytes: null, isFull: true }, { isFull: false, reserve: 'keep' }],
] as const)('when %s', (_name, state, decision) => expect(decideRoom(state)).toEqual(decision));

it('a disk on which nobody else writes comes to rest: the reserve neither fills the disk nor goes to and fro', () => {
  const size = fc.integer({ min: 0, max: 256 });
  fc.assert(
    fc.property(size, size, fc.boolean(), (free, reserved, wasFull) => {
      let freeBytes = free * MIB;
      let reserveBytes = Math.min(reserved * MIB, RESERVE_BYTES);
      let isFull = wasFull;
      const moves: string[] = [];
      for (let turn = 0; turn < 40; turn++) {
        const decision = decideRoom({ freeBytes, reserveBytes, wantedBytes: RESERVE_BYTES, isFull });
        isFull = decision.isFull;
        if (decision.reserve === 'keep') continue;
        moves.push(decision.reserve);
        const step =
          decision.reserve === 'grow'
            ? Math.min(STEP_BYTES, RESERVE_BYTES - reserveBytes)
            : -Math.min(STEP_BYTES, reserveBytes);
        reserveBytes += step;
        freeBytes -= step;
      }
      expect(new Set(moves).size).toBeLessThanOrEqual(1);
      expect(freeBytes >= FULL_BELOW_BYTES || reserveBytes === 0).toBe(true);
      expect(decideRoom({ freeBytes, reserveBytes, wantedBytes: RESERVE_BYTES, isFull }).reserve).toBe('keep');
    }),
  );
});

it.each([
  ['with 10 MiB free and a part of the reserve', 10, 40, true],
  ['with 16 MiB free and a part of the reserve', 16, 40, false],
  ['with 10 MiB free and the whole reserve', 10, 64, false],
  ['with 10 MiB free and nothing left in reserve', 10, 0, true],
  ['of a new control plane with 10 MiB free', 10, null, false],
  ['of a new control plane with 7 MiB free', 7, null, true],
] as const)('a start %s', (_name, freeMib, reserveMib, isFull) => {
  const folder = mkdtempSync(join(tmpdir(), 'gpurent-disk-room-'));
  const file = join(folder, 'gpurent.db');
  if (reserveMib !== null) {
    for (const each of [file, `${file}.reserve`]) writeFileSync(each, '');
    truncateSync(`${file}.reserve`, reserveMib * MIB);
  }
  const room = new DiskRoom(file, RESERVE_BYTES, silentLogger);
  vi.spyOn(room as unknown as { read: () => unknown }, 'read').mockReturnValue({
    blocks: 300,
    bavail: freeMib,
    bsize: MIB,
  });
  room.makeRoom();
  expect([room.isFull, room.reservedBytes / MIB]).toEqual([isFull, reserveMib ?? 0]);
  room.look();
  expect(room.isFull).toBe(isFull);
  rmSync(folder, { recursive: true });
});
