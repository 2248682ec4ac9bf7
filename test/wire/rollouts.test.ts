import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { advanceUntil } from '../harness/advance-until.js';
import { TestControlPlane } from '../harness/control-plane.js';
import type { FakeAgent } from '../harness/fake-agent.js';

interface Rollout {
  id: string;
  version: string;
  stopped_at: string | null;
  stop_reason: string | null;
  ended_at: string | null;
  waiting: number;
  under_way: number;
  upgraded: number;
  failed: number;
  failures: { machine_id: string; machine_name: string; reason: string }[];
}

const MINUTE_MS = 60_000;
const OLD = '9.8.0';
const NEW = '9.9.0';
const ROUTE = '/v1/operator/rollouts';

let test: TestControlPlane;
beforeAll(async () => (test = await TestControlPlane.start()));
afterAll(() => test.stop());
beforeEach(async () => {
  for (const agent of test.agents.splice(0)) {
    await agent.claim({ takesUpgrades: false });
    agent.close();
  }
  await named(`/srv/gpurent-${NEW}-linux-x64.tar.gz`);
});

const named = (hostRelease: string) =>
  test.restart({ hostRelease, publicUrl: test.url, publicGrpcAddress: 'gpus.example:8090' });

/** Connects so many hosts whose owners allow upgrades. */
async function taking(count: number, version = OLD): Promise<FakeAgent[]> {
  const agents: FakeAgent[] = [];
  for (let made = 0; made < count; made++) {
    const agent = await test.host();
    await agent.claim({ takesUpgrades: true, agentVersion: version });
    agents.push(agent);
  }
  return agents;
}
/** What a host does that has been upgraded. */
const comeBack = (agent: FakeAgent, version = NEW) => agent.claim({ takesUpgrades: true, agentVersion: version });
const start = () => test.operator.post<Rollout>(ROUTE);
const refusesToStart = async () =>
  expect(await test.operator.request('POST', ROUTE)).toMatchObject({ status: 409, body: { code: 'INVALID_STATE' } });
const read = ({ id }: Rollout) => test.operator.get<Rollout>(`${ROUTE}/${id}`);
const asked = (agents: readonly FakeAgent[]) => agents.filter(({ upgrades }) => upgrades.length > 0);
const stepping = (stepMs: number) => ({ clock: test, stepMs, parties: [() => test.roundTrip()] });
/** Waits until a host has been asked, and returns it. */
const firstAsked = (agents: readonly FakeAgent[]) =>
  advanceUntil('a host to be asked', stepping(1), () => asked(agents)[0]);
/** Moves the clock while all hosts go on speaking. */
async function pass(ms: number, agents: readonly FakeAgent[]): Promise<void> {
  for (let left = ms; left > 0; left -= 10_000) {
    test.advance(Math.min(left, 10_000));
    for (const agent of agents) if (agent.connected) await agent.roundTrip();
  }
  test.advance(1);
}

it('asks one host at a time, then waves, each once the one before has taken instances for a minute', async () => {
  const agents = await taking(7);
  const rollout = await start();
  expect(rollout).toMatchObject({ version: NEW, waiting: 7, under_way: 0, ended_at: null });
  const waves: number[] = [];
  for (let turn = 0; turn < 30 && (await read(rollout)).ended_at === null; turn++) {
    await pass(1, agents);
    const now = asked(agents).filter((agent) => agent.connected);
    const fresh = now.filter(({ hostId }) => !done.has(hostId));
    if (fresh.length === 0) {
      await pass(1_000, agents);
      continue;
    }
    waves.push(fresh.length);
    for (const agent of fresh) {
      await comeBack(agent);
      done.add(agent.hostId);
    }
    await pass(1, agents);
    await pass(50_000, agents);
    expect(asked(agents)).toHaveLength(done.size);
    await pass(11_000, agents);
  }
  expect(waves).toEqual([1, 1, 1, 2, 2]);
  expect(await read(rollout)).toMatchObject({ upgraded: 7, failed: 0, waiting: 0, under_way: 0, stopped_at: null });
});
const done = new Set<string>();

it('asks no host whose owner forbids it, that is as new, or that is away', async () => {
  const [away, same, newer] = [await taking(1), await taking(1, NEW), await taking(1, '9.9.1')].flat();
  away?.disconnect();
  const forbids = await test.host();
  await forbids.claim({ agentVersion: OLD });
  const rollout = await start();
  await advanceUntil('its end', stepping(1_000), async () => (await read(rollout)).ended_at !== null);
  expect(asked([away, same, newer, forbids].flatMap((agent) => agent ?? []))).toEqual([]);
  expect(await read(rollout)).toMatchObject({ upgraded: 0, failed: 0, stopped_at: null });
});

it('stops at the first failure, with its reason, and tells operators', async () => {
  const agents = await taking(3);
  const rollout = await start();
  const first = await firstAsked(agents);
  first.say({ upgradeReport: { version: NEW, state: 'UPGRADE_STATE_LOADING', reason: '' } });
  first.say({
    upgradeReport: { version: NEW, state: 'UPGRADE_STATE_FAILED', reason: 'the signature\u202e\nis not good' },
  });
  await first.roundTrip();
  await pass(2_000, agents);
  const stopped = await read(rollout);
  expect(stopped).toMatchObject({ failed: 1, upgraded: 0, under_way: 0 });
  expect(stopped.stop_reason).toContain('the signature is not good');
  expect(stopped.failures).toMatchObject([{ machine_id: first.hostId, reason: 'the signature is not good' }]);
  expect(stopped.ended_at).not.toBeNull();
  expect(asked(agents)).toHaveLength(1);
  const { items } = await test.operator.get<{ items: { type: string; data: object }[] }>(
    '/v1/operator/events?types=machine.upgrade_failed',
  );
  expect(items).toMatchObject([
    { data: { machine_id: first.hostId, version: NEW, reason: 'the signature is not good' } },
  ]);
});

it('takes a host that is not back in half an hour, or takes nothing then, for failed', async () => {
  for (const isBack of [false, true]) {
    const agents = await taking(2);
    const rollout = await start();
    const first = await firstAsked(agents);
    if (isBack) await first.claim({ takesUpgrades: true, agentVersion: NEW, unseen: true });
    else first.disconnect();
    const others = agents.filter((agent) => agent !== first);
    await pass(29 * MINUTE_MS, others);
    expect(await read(rollout)).toMatchObject({ under_way: 1, failed: 0 });
    await pass(2 * MINUTE_MS, others);
    const ended = await read(rollout);
    expect(ended.stop_reason).toContain(isBack ? 'took no instances within 30' : 'was not back with the new version');
    expect(asked(agents)).toHaveLength(1);
    for (const agent of agents) await agent.claim({ takesUpgrades: false });
  }
});

it('asks a host again that was away when it was asked, and goes on after a restart of the control plane', async () => {
  const agents = await taking(1);
  const rollout = await start();
  const agent = await firstAsked(agents);
  expect(agent.upgrades).toEqual([NEW]);
  await named(`/srv/gpurent-${NEW}-linux-x64.tar.gz`);
  await comeBack(agent, OLD);
  await advanceUntil('it to be asked again', stepping(1), () => agent.upgrades.length === 2);
  agent.say({ upgradeReport: { version: NEW, state: 'UPGRADE_STATE_INSTALLING', reason: '' } });
  await pass(2 * MINUTE_MS, agents);
  expect(agent.upgrades).toHaveLength(2);
  expect(await read(rollout)).toMatchObject({ under_way: 1 });
  await comeBack(agent);
  await pass(2 * MINUTE_MS, agents);
  expect(await read(rollout)).toMatchObject({ upgraded: 1, under_way: 0 });
});

it('is stopped by an operator, and by another release in the settings; one is open at a time', async () => {
  const agents = await taking(3);
  const rollout = await start();
  await refusesToStart();
  const first = await firstAsked(agents);
  expect(await test.operator.post<Rollout>(`${ROUTE}/${rollout.id}/stop`)).toMatchObject({
    under_way: 1,
    stop_reason: 'stopped by an operator',
    ended_at: null,
  });
  await comeBack(first);
  await pass(1, agents);
  await pass(62_000, agents);
  expect(await read(rollout)).toMatchObject({ upgraded: 1, waiting: 0 });
  expect((await read(rollout)).ended_at).not.toBeNull();

  const next = await start();
  await named('/srv/gpurent-9.9.1-linux-x64.tar.gz');
  test.advance(1_000);
  expect(await read(next)).toMatchObject({ stop_reason: 'GPURENT_HOST_RELEASE names release 9.9.1 now', upgraded: 0 });
  await named('/srv/agent.tar.gz');
  await refusesToStart();
});

it('asks for a build between releases by its whole version, which its agents report', async () => {
  const build = '9.9.0-dev.4+ab12cd34';
  await named(`/srv/gpurent-${build}-linux-x64.tar.gz`);
  const agents = await taking(1);
  const rollout = await start();
  const agent = await firstAsked(agents);
  expect(agent.upgrades).toEqual([build]);
  await comeBack(agent, build);
  await pass(2 * MINUTE_MS, agents);
  expect(await read(rollout)).toMatchObject({ version: build, upgraded: 1, under_way: 0 });
});

it('takes no word on an upgrade that nobody has asked for, and none that no agent would say', async () => {
  const [agent, other] = await taking(2);
  const report = (fields: object) => ({ upgradeReport: { version: NEW, state: 'UPGRADE_STATE_FAILED', ...fields } });
  agent?.say(report({ reason: 'nobody asked' }));
  await agent?.roundTrip();
  const rollout = await start();
  const first = await firstAsked(test.agents);
  const liar = first === agent ? other : agent;
  liar?.say(report({ reason: 'not me' }));
  first.say(report({ version: '9.9.9', reason: 'another one' }));
  first.say(report({ reason: 'x'.repeat(600) }));
  first.say(report({ state: 'UPGRADE_STATE_UNSPECIFIED' }));
  await pass(1_000, test.agents);
  expect(await read(rollout)).toMatchObject({ failed: 0, under_way: 1, stopped_at: null });
});
