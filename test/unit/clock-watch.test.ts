import {
  forgetRunFloors,
  restartExhaustionClocks,
  shiftUnsettledTimes,
} from '../../control-plane/services/metering/clock-shift.js';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { ClockStepDetector } from '../../control-plane/services/system/clock-steps.js';
import { getClockState } from '../../control-plane/services/reconciler/clock.js';
import type { Platform } from '../../control-plane/services/system/platform.js';
import { Store } from '../../control-plane/store/store.js';
import { systemClock } from '../../shared/clock.js';
import { silentLogger } from '../../shared/logger.js';
import { ManualClock } from '../harness/manual-clock.js';

it('a step is whole milliseconds, though the monotonic clock counts parts of them', () => {
  const folder = mkdtempSync(join(tmpdir(), 'gpurent-test-'));
  let [wall, elapsed] = [Date.parse('2026-01-01'), 17.25];
  const clock = { ...systemClock, now: () => wall, monotonic: () => elapsed };
  const store = new Store(join(folder, 'gpurent.db'), clock);
  try {
    const watch = new ClockStepDetector(store, clock, silentLogger, {
      shift: shiftUnsettledTimes,
      forgetFloors: forgetRunFloors,
      restartGrace: restartExhaustionClocks,
    });
    expect(watch.isTrusted()).toBe(true);
    wall += 3_601_000;
    elapsed += 999.625;
    expect(watch.isTrusted()).toBe(false);
    expect(getClockState({ store } as Platform)).toEqual({ held: true, stepped_ms: 3_600_000, since: wall });
  } finally {
    store.close();
    rmSync(folder, { recursive: true, force: true });
  }
});

it('after a boot of the machine, nothing that cannot be undone is done before the hosts had time to contradict the clock', () => {
  const folder = mkdtempSync(join(tmpdir(), 'gpurent-test-'));
  const clock = new ManualClock();
  const effects = { shift: shiftUnsettledTimes, forgetFloors: forgetRunFloors, restartGrace: restartExhaustionClocks };
  const answers: Record<string, [boolean, boolean]> = {};
  const runs: [name: string, bootId: string, expected: number][] = [
    ['new database', 'one', 3],
    ['same boot', 'one', 3],
    ['other boot', 'two', 3],
    ['other boot, one host', 'three', 1],
  ];
  try {
    for (const [name, bootId, expected] of runs) {
      const store = new Store(join(folder, 'gpurent.db'), clock);
      const hosts = { expected, hostClocks: () => [] };
      const watch = new ClockStepDetector(store, clock, silentLogger, effects, bootId, hosts);
      store.transact(() => undefined);
      const before = watch.isTrusted();
      clock.advance(120_000);
      answers[name] = [before, watch.isTrusted()];
      store.close();
      clock.advance(3_600_000);
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  expect(answers).toEqual({
    'new database': [true, true],
    'same boot': [true, true],
    'other boot': [false, true],
    'other boot, one host': [true, true],
  });
});
