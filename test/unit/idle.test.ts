import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { NOTICE_MS, idleAfter, idleStep, isIdle, type IdleSpan } from '../../control-plane/domain/instances/idle.js';
import { unmeasured, type Use } from '../../shared/measurement.js';
import { MINUTE_MS } from '../../shared/time.js';

const gpu = (useMaxPercent: number | null) => ({ ...unmeasured(1).gpus[0], useMaxPercent }) as Use['gpus'][number];
const IDLE: Use = {
  ...unmeasured(0),
  cpuMillis: 10,
  cpuMaxMillis: 199,
  cpuLimitMillis: 2e3,
  sshSessions: 0,
  portConnections: 0,
  connectionsOpened: 0,
  gpus: [gpu(5), gpu(0)],
};
const isIdleWith = (changes: Partial<Use>, hasPorts = true) => isIdle({ ...IDLE, ...changes }, 2, () => hasPorts);

describe('a minute is idle', () => {
  it('with little of everything', () => {
    expect(isIdleWith({})).toBe(true);
  });

  it.each<[string, Partial<Use>]>([
    ['a GPU above 5 percent', { gpus: [gpu(0), gpu(6)] }],
    ['a GPU that was not measured', { gpus: [gpu(0), gpu(null)] }],
    ['fewer GPUs than it has', { gpus: [gpu(0)] }],
    ['no GPU at all', { gpus: [] }],
    ['10 percent of its CPU', { cpuMaxMillis: 200 }],
    ['CPU that was not measured', { cpuMaxMillis: null }],
    ['no known limit of the CPU', { cpuLimitMillis: null }],
    ['an SSH session', { sshSessions: 1 }],
    ['SSH sessions that were not measured', { sshSessions: null }],
    ['an open connection to a port', { portConnections: 1 }],
    ['connections that were not measured', { portConnections: null }],
    ['a short connection', { connectionsOpened: 1 }],
    ['short connections that were not measured', { connectionsOpened: null }],
  ])('but not with %s', (_, changes) => {
    expect(isIdleWith(changes)).toBe(false);
  });

  it('with new connections where only SSH is published: strangers knock at every address', () => {
    expect(isIdleWith({ connectionsOpened: 9 }, false)).toBe(true);
  });
});

const MINUTE = fc.constantFrom<'idle' | 'busy' | 'unmeasured'>('idle', 'idle', 'idle', 'idle', 'busy', 'unmeasured');
type Minute = typeof MINUTE extends fc.Arbitrary<infer T> ? T : never;

/** Returns how many minutes at the end of a history were idle without a gap. */
function idleAtEnd(history: readonly Minute[]): number {
  const other = history.findLastIndex((minute) => minute !== 'idle');
  return history.length - 1 - other;
}

describe('an idle span', () => {
  const since = 1_000_000;
  const endOf = (index: number) => since + (index + 1) * MINUTE_MS;
  const follow = (before: IdleSpan | null, history: readonly Minute[], index: number, jitterMs = 0) => {
    const minute = history[index];
    if (minute === undefined || minute === 'unmeasured') return before;
    return idleAfter(before, { at: endOf(index) + jitterMs }, minute === 'idle', { since, now: since + 1e9 });
  };

  it('has every idle minute since the last busy one or gap, whatever comes twice or late', () => {
    fc.assert(
      fc.property(fc.array(MINUTE, { maxLength: 60 }), fc.array(fc.nat(12), { maxLength: 60 }), (history, again) => {
        let span: IdleSpan | null = null;
        for (let index = 0; index < history.length; index++) {
          span = follow(span, history, index);
          // After a connect the last minutes come again, with times that differ a little.
          for (let old = Math.max(index - (again[index] ?? 0), 0); old <= index; old++)
            span = follow(span, history, old, (index % 3) * 20);
        }
        const idleMs = span && span.to > endOf(history.length - 1) - 1 ? span.to - span.from : 0;
        const expectedMs = idleAtEnd(history) * MINUTE_MS;
        expect(idleMs).toBeLessThanOrEqual(expectedMs + 40);
        expect(idleMs).toBeGreaterThanOrEqual(expectedMs - 40);
      }),
    );
  });

  it('begins anew with each run, after a gap, and when the clock was set back', () => {
    const before = { from: since - 1, to: since + 10 };
    const now = since + MINUTE_MS;
    expect(idleAfter(before, { at: now }, true, { since, now })).toEqual({ from: since, to: now });
    const span = { from: since, to: since + MINUTE_MS };
    const late = endOf(2);
    expect(idleAfter(span, { at: late }, true, { since, now: late })).toEqual({ from: late - MINUTE_MS, to: late });
    const earlier = since + 30_000;
    expect(idleAfter(span, { at: earlier }, true, { since, now: earlier })).toEqual({ from: since, to: earlier });
    expect(idleAfter(null, { at: since - 1 }, true, { since, now })).toBeNull();
  });
});

describe('what follows from an idle span', () => {
  const limitMs = 30 * MINUTE_MS;
  const spanOf = (minutes: number) => ({ from: 0, to: minutes * MINUTE_MS });
  const at = (minutes: number) => minutes * MINUTE_MS;

  it('is an event ten minutes before the stop, and then the stop', () => {
    expect(idleStep(spanOf(19), limitMs, null, at(19))).toEqual({ is: 'none' });
    expect(idleStep(spanOf(20), limitMs, null, at(20))).toEqual({ is: 'tell', stopsAt: at(30) });
    expect(idleStep(spanOf(29), limitMs, at(30), at(29))).toEqual({ is: 'none' });
    expect(idleStep(spanOf(30), limitMs, at(30), at(30))).toEqual({ is: 'stop' });
  });

  it('leaves ten minutes also after late minutes, and with a short limit', () => {
    expect(idleStep(spanOf(50), limitMs, null, at(50))).toEqual({ is: 'tell', stopsAt: at(60) });
    expect(idleStep(spanOf(59), limitMs, at(60), at(59))).toEqual({ is: 'none' });
    expect(idleStep(spanOf(1), MINUTE_MS, null, at(1))).toEqual({ is: 'tell', stopsAt: at(1) + NOTICE_MS });
  });

  it('is nothing while the newest minute is old', () => {
    expect(idleStep(spanOf(30), limitMs, at(30), at(32))).toEqual({ is: 'none' });
    expect(idleStep(spanOf(25), limitMs, null, at(28))).toEqual({ is: 'none' });
  });
});
