import { afterEach, beforeEach, expect, it } from 'vitest';
import { FindingReports } from '../../agent/doctor/finding-reports.js';
import { bad, doubtful, good, type Check, type Finding } from '../../agent/doctor/finding.js';
import type { Send } from '../../agent/link/outbox.js';
import { advanceUntil } from '../harness/advance-until.js';
import { LONGEST_OF_FINDING, MOST_FINDINGS } from '../../shared/finding.js';
import { Verdict, type FindingReport } from '../../shared/gen/gpurent/agent/v1/agent.js';
import { MINUTE_MS } from '../../shared/time.js';
import { ManualClock } from '../harness/manual-clock.js';
import { AssembledHost } from './assembled-host.js';

const clock = new ManualClock();
/** What the check finds, and how often it has looked. */
let found: () => Promise<Finding[]>;
let looks: number;
let checks: Check[];
let reports: FindingReport['findings'][];
let made: FindingReports;
let isFull: boolean;
const send: Send = ({ message }) => {
  if (!isFull && message?.$case === 'findingReport') reports.push(message.value.findings);
  return !isFull;
};

beforeEach(() => {
  [looks, reports, isFull] = [0, [], false];
  found = async () => [good('all is well')];
  const look = () => {
    looks += 1;
    return found();
  };
  checks = [{ name: 'disk', look }];
  made = new FindingReports(checks, clock);
});
afterEach(() => made.disconnected());

/** Lets time pass, and the checks end. */
async function pass(ms: number): Promise<void> {
  clock.advance(ms);
  for (let turn = 0; turn < 5; turn += 1) await new Promise(setImmediate);
}

it('reports soon what the doctor finds, the worst first, and again every ten minutes', async () => {
  found = async () => [good('12 GB are free'), doubtful('it is slow', 'buy another'), bad('it is full', 'make room')];
  made.connected(true, send);
  // What runs here goes first.
  expect(looks).toBe(0);
  await pass(2_000);
  expect(reports).toEqual([
    [
      { check: 'disk', verdict: Verdict.VERDICT_FAILURE, what: 'it is full', advice: 'make room' },
      { check: 'disk', verdict: Verdict.VERDICT_WARNING, what: 'it is slow', advice: 'buy another' },
      { check: 'disk', verdict: Verdict.VERDICT_OK, what: '12 GB are free', advice: '' },
    ],
  ]);
  await pass(9 * MINUTE_MS);
  // A new connection within that time has nothing new to say.
  made.disconnected();
  made.connected(true, send);
  await pass(MINUTE_MS / 2);
  expect(looks).toBe(1);
  await pass(MINUTE_MS / 2);
  expect(reports).toHaveLength(2);
});

it('looks again soon when the health of the host changes, at most once a minute', async () => {
  made.connected(true, send);
  made.noteHealth('well');
  await pass(2_000);
  for (const health of ['well', 'ill', 'well', 'ill']) {
    made.noteHealth(health);
    await pass(2_000);
  }
  expect(looks).toBe(1);
  await pass(MINUTE_MS);
  expect(reports).toHaveLength(2);
  // A change that nobody could be told of is told of after the next connect.
  made.disconnected();
  made.noteHealth('well');
  await pass(MINUTE_MS);
  made.connected(true, send);
  await pass(2_000);
  expect(reports).toHaveLength(3);
});

it('tries again a minute later where the stream is full', async () => {
  isFull = true;
  made.connected(true, send);
  await pass(2_000);
  isFull = false;
  await pass(MINUTE_MS);
  expect([looks, reports.length]).toEqual([2, 1]);
});

it('gives up a check that does not end, and never runs two rounds at once', async () => {
  found = () => new Promise(() => {});
  checks.push({ name: 'broken', look: () => Promise.reject(new Error('no such file')) });
  made.connected(true, send);
  await pass(2_000);
  made.disconnected();
  made.connected(true, send);
  for (let minute = 0; minute < 2; minute += 1) await pass(MINUTE_MS);
  expect([looks, reports.length]).toEqual([1, 0]);
  await pass(MINUTE_MS);
  expect(reports[0]).toMatchObject([
    { check: 'disk', verdict: Verdict.VERDICT_FAILURE, what: 'it has not ended within three minutes' },
    { check: 'broken', verdict: Verdict.VERDICT_FAILURE, what: 'no such file' },
  ]);
});

it('says no more, and nothing longer or stranger, than a control plane takes', async () => {
  const what = `two\nlines\u202e${'x'.repeat(1_000)}`;
  found = async () => [...Array.from({ length: 200 }, () => good('fine')), bad(what, what)];
  made.connected(true, send);
  await pass(2_000);
  expect(reports[0]).toHaveLength(MOST_FINDINGS);
  const [worst] = reports[0] ?? [];
  expect(worst?.what).toMatch(/^two lines x+$/);
  expect([worst?.what.length, worst?.advice.length]).toEqual([LONGEST_OF_FINDING.what, LONGEST_OF_FINDING.advice]);
});

it.each([
  ['of this release', true, 2],
  ['of the release before', undefined, 0],
])('the agent reports after its start and when a GPU fails, to a control plane %s', async (_, takes, count) => {
  const host = new AssembledHost();
  host.checks = checks;
  host.takesFindings = takes;
  await host.start();
  await host.inTime('the first heartbeats', () => host.beats[1]);
  const { gpus, ...rest } = await host.gpus.inventory();
  host.gpus.inventory = async () => ({ ...rest, gpus: gpus.map((gpu) => ({ ...gpu, healthy: false })) });
  await advanceUntil('two minutes', { clock: host.clock, stepMs: 5_000 }, () => host.beats[13]);
  expect(host.hellos[0]?.reportsFindings).toBe(true);
  expect(host.said.filter(({ $case }) => $case === 'findingReport')).toHaveLength(count);
  await host.close();
});
