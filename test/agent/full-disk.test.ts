import { mkdtempSync, rmSync, statSync, truncateSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { MIB } from '../../shared/bytes.js';
import { DiskReserve } from '../../shared/disk-reserve.js';
import { refuseWrites } from '../harness/full-disk.js';
import { AssembledHost } from './assembled-host.js';
import { TestHost, destroy, provision, start, stop } from './host.js';

describe('a disk that takes no more', () => {
  let host: TestHost;

  beforeEach(() => {
    host = new TestHost();
  });
  afterEach(() => host.close());

  it('takes back nothing that has been done, and what was done is known once it takes it', async () => {
    const release = host.runtime.hold('create');
    const command = await provision(host, 1);
    host.executor.receive(command);
    await host.answered(command, 'ACCEPTED');
    const accept = refuseWrites(host.journal);
    release();
    await host.answered(command, 'DONE');
    await host.executor.idle();
    expect(host.runtime.calls).toEqual(['create i']);
    expect(host.journal.obstacle).toMatch(/cannot be written .*: make room in/);
    expect(() => host.journal.restore()).toThrow();
    accept();
    host.journal.restore();
    expect(host.journal.obstacle).toBe('');
    host.restart();
    host.executor.receive(command);
    expect(host.outcomes(command)).toEqual(['ACCEPTED', 'DONE', 'DONE']);
    expect(host.runtime.calls).toEqual(['create i']);
  });

  it('an answer that cannot be kept takes back nothing that has been done', async () => {
    const command = await provision(host, 1);
    const finish = vi.spyOn(host.journal, 'finish').mockImplementationOnce(() => {
      throw new Error('the journal is broken');
    });
    host.executor.receive(command);
    await host.executor.idle();
    expect(finish).toHaveBeenCalledOnce();
    host.executor.receive(command);
    await host.answered(command, 'DONE');
    expect(host.runtime.calls).toEqual(['create i']);
  });

  it('nothing is brought up, and what is up can be stopped and removed, and is told of', async () => {
    const command = await provision(host, 1);
    host.executor.receive(command);
    await host.answered(command, 'DONE');
    host.clock.advance(5_000);
    const accept = refuseWrites(host.journal);
    const another = await provision(host, 1, {}, 'j');
    host.executor.receive(another);
    expect(await host.answered(another, 'FAILED')).toMatchObject({ code: 'JOURNAL_UNWRITABLE' });
    const halt = stop(2);
    host.executor.receive(halt);
    expect((await host.answered(halt, 'DONE')).runs).toEqual([expect.objectContaining({ ranMs: 5_000 })]);
    const again = await start(host, 3);
    host.executor.receive(again);
    expect(await host.answered(again, 'REFUSED')).toMatchObject({ code: 'JOURNAL_UNWRITABLE' });
    const gone = destroy(4);
    host.executor.receive(gone);
    await host.answered(gone, 'DONE');
    expect(host.runtime.calls).toEqual(['create i', 'stop j', 'stop i', 'remove i']);
    accept();
    host.journal.restore();
    host.restart();
    expect(host.journal.instance('i')).toMatchObject({ sequence: 4, desired: 'absent' });
  });
});

it('a host whose disk is full comes back after its control plane, and says so', async () => {
  const host = new AssembledHost();
  try {
    await host.start();
    await host.inTime('the first heartbeat', () => host.beats[0]);
    expect(host.beats[0]?.heartbeat.obstacle).toBe('');
    const accept = refuseWrites(host.journal);
    host.cut();
    await host.inTime('a second hello', () => host.hellos[1]);
    const told = () => host.beats.at(-1)?.heartbeat.obstacle;
    await host.inTime('an obstacle', () => told() !== '');
    expect(told()).toMatch(/the journal of this host cannot be written .*: make room in/);
    accept();
    host.journal.restore();
    await host.inTime('no obstacle', () => told() === '');
  } finally {
    await host.close();
  }
});

describe('the reserve', () => {
  let folder: string;

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'gpurent-reserve-'));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  it('takes room, gives it up in steps until nothing is left, and takes it again', () => {
    const file = join(folder, 'reserve');
    const reserve = new DiskReserve(file, MIB / 2);
    const whole = 4 * MIB;
    expect(reserve.release()).toBe(false);
    expect(reserve.growTo(whole)).toBe(true);
    expect(statSync(file)).toMatchObject({ size: whole });
    // Written, and no hole in a file.
    expect(statSync(file).blocks * 512).toBeGreaterThanOrEqual(whole);
    expect(reserve.release()).toBe(true);
    expect(reserve.size).toBe(whole - MIB / 2);
    while (reserve.release());
    expect(reserve.size).toBe(0);
    expect(reserve.growTo(whole)).toBe(true);
    truncateSync(file, 1);
    expect(reserve.growTo(whole)).toBe(true);
    expect(reserve.size).toBe(whole);
  });
});
