import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { eventually } from '../../scripts/eventually.js';
import { LONGEST_OF_FINDING, MOST_FINDINGS } from '../../shared/finding.js';
import { TestControlPlane } from '../harness/control-plane.js';
import type { FakeAgent } from '../harness/fake-agent.js';

interface Findings {
  supported: boolean;
  reported_at: string | null;
  findings: { check: string; verdict: string; what: string; advice: string | null }[];
}

const FULL = { check: 'disk', verdict: 'VERDICT_FAILURE', what: 'it is full', advice: 'make room' };
const FINE = { check: 'clock', verdict: 'VERDICT_OK', what: 'synchronized', advice: '' };

let test: TestControlPlane;
let agent: FakeAgent;
beforeAll(async () => (test = await TestControlPlane.start()));
afterAll(() => test.stop());
beforeEach(async () => (agent = await test.host()));

const read = ({ hostId } = agent) => test.operator.get<Findings>(`/v1/operator/machines/${hostId}/findings`);
const isRefused = (why: string) =>
  eventually('the refusal', () => test.logged(40).some((line) => line.includes(agent.hostId) && line.includes(why)));

it('shows what a host reports with its time, until its next report', async () => {
  expect(await read()).toEqual({ supported: true, reported_at: null, findings: [] });
  const before = new Date(test.clock.now()).toISOString();
  agent.say({ findingReport: { findings: [FULL, FINE] } });
  const shown = await eventually('the report', async () => {
    const now = await read();
    return now.reported_at === null ? undefined : now;
  });
  expect(shown).toEqual({
    supported: true,
    reported_at: before,
    findings: [
      { check: 'disk', verdict: 'failure', what: 'it is full', advice: 'make room' },
      { check: 'clock', verdict: 'ok', what: 'synchronized', advice: null },
    ],
  });
  // Neither its offers nor its state depend on it.
  expect(await test.operator.get(`/v1/operator/machines/${agent.hostId}`)).toMatchObject({ obstacle: null });
  test.clock.advance(1_000);
  agent.say({ findingReport: { findings: [] } });
  await eventually('the next report', async () => (await read()).findings.length === 0);
  expect((await read()).reported_at).not.toBe(before);
});

it('says that an agent of the release before reports none, also where a newer one has', async () => {
  agent.say({ findingReport: { findings: [FULL] } });
  await eventually('the report', async () => (await read()).findings.length > 0);
  await agent.claim({ reportsFindings: false });
  expect(await read()).toEqual({ supported: false, reported_at: null, findings: [] });
  const older = await test.host({ wire: 'protocol 1' });
  expect(await read(older)).toMatchObject({ supported: false, findings: [] });
});

const UNKNOWN_VERDICT = 'not one that this control plane knows';
const tooLong = (name: keyof typeof LONGEST_OF_FINDING): [string, object[], string] => [
  `a ${name} that is too long`,
  [{ ...FULL, [name]: 'x'.repeat(LONGEST_OF_FINDING[name] + 1) }],
  `more than ${LONGEST_OF_FINDING[name]} characters`,
];
const unshown = (text: string): [string, object[], string] => [
  `characters that are not shown (${JSON.stringify(text)})`,
  [FINE, { ...FULL, advice: `run ${text}this` }],
  'characters that are not shown',
];

it.each([
  ['too many', Array.from({ length: MOST_FINDINGS + 1 }, () => FULL), `more than ${MOST_FINDINGS} findings`],
  ...(['check', 'what', 'advice'] as const).map(tooLong),
  ...['\u0000', '\n', '\u001b[2J', '\u202e'].map(unshown),
  ['a verdict that nobody knows', [{ ...FULL, verdict: 9 }], UNKNOWN_VERDICT],
  ['no verdict', [{ ...FULL, verdict: 0 }], UNKNOWN_VERDICT],
] satisfies [string, object[], string][])(
  'refuses %s as a whole, and keeps what it knows',
  async (_, findings, why) => {
    agent.say({ findingReport: { findings: [FULL] } });
    await eventually('the report', async () => (await read()).findings.length > 0);
    agent.say({ findingReport: { findings } });
    await isRefused(why);
    expect((await read()).findings).toMatchObject([{ what: 'it is full' }]);
    expect(agent.connected).toBe(true);
  },
);

it('takes only so many reports of a host, and all of its other messages', async () => {
  for (let index = 0; index < 100; index += 1)
    agent.say({ findingReport: { findings: [{ ...FULL, what: `report ${index}` }] } });
  agent.say({ findingReport: { findings: [{ ...FULL, verdict: 0 }] } });
  await isRefused('not one that this control plane knows');
  expect((await read()).findings).toMatchObject([{ what: 'report 11' }]);
  test.clock.advance(10_000);
  agent.say({ findingReport: { findings: [FINE] } });
  await eventually('a later report', async () => (await read()).findings[0]?.what === FINE.what);
  expect(agent.connected).toBe(true);
});

it('forgets the findings of a machine that is removed', async () => {
  agent.say({ findingReport: { findings: [{ ...FULL, what: 'only here' }] } });
  await eventually('the report', async () => (await read()).findings.length > 0);
  agent.disconnect();
  await eventually('the host to be away', async () => {
    return !(await test.operator.get<{ connected: boolean }>(`/v1/operator/machines/${agent.hostId}`)).connected;
  });
  await test.operator.delete(`/v1/operator/machines/${agent.hostId}`);
  expect((await test.operator.request('GET', `/v1/operator/machines/${agent.hostId}/findings`)).status).toBe(404);
  expect(test.everythingStored()).not.toContain('only here');
});
