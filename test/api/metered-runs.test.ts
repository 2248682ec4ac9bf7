import { afterAll, beforeAll, expect, it } from 'vitest';
import { MINUTE_MS } from '../../shared/time.js';
import { query } from '../../control-plane/store/sql.js';
import type { InstanceBody } from '../harness/api-client.js';
import { eventually } from '../../scripts/eventually.js';
import { TestControlPlane, statusIs } from '../harness/control-plane.js';
import { GPU_MICRO, HOUR_MS, makePoor, type Poor } from '../harness/poor.js';

const MICRO_A_MINUTE = GPU_MICRO / 60;
const MICRO_A_SECOND = GPU_MICRO / 3_600;

let test: TestControlPlane;
let templateId: string;
beforeAll(async () => {
  test = await TestControlPlane.start();
  templateId = await test.template();
});
afterAll(() => test.stop());

const poorOf = (instances?: number) => makePoor(test, templateId, instances);
const ask = ({ renter, id }: Poor, method: string, action = '') =>
  renter.api.request(method, `/v1/instances/${id}${action}`);
const spent = async (poor: Poor, micro: number) =>
  eventually(`a spend of ${micro}`, async () => {
    test.core.workers.runAll();
    return (await poor.read()).spend_micro === micro;
  });
const stopOf = ({ agent, id }: Poor) =>
  eventually('the stop', () => {
    agent.beat();
    test.core.workers.runAll();
    return agent.held.find(({ desired, instanceId }) => desired === 'stopped' && instanceId === id);
  });

it('a run in a gap is charged, though by the time that it is told of another one runs that began after the stop', async () => {
  const poor = await poorOf();
  const { agent, id } = poor;
  await poor.pass(10 * MINUTE_MS);
  agent.disconnect();
  test.advance(10 * MINUTE_MS);
  await ask(poor, 'POST', '/stop');
  test.advance(MINUTE_MS);
  // Its host, which has heard of no stop, has brought it back a second time.
  agent.reboot(id);
  test.advance(4 * MINUTE_MS);
  agent.automatic = false;
  await agent.connect();
  await poor.pass(0);
  const { commandId, sequence } = await stopOf(poor);
  const runs = [{ runId: 'between', ranMs: 7 * MINUTE_MS, endedMsAgo: 7 * MINUTE_MS }];
  const observation = { state: 'WORKLOAD_STATE_STOPPED' };
  const outcome = 'COMMAND_OUTCOME_DONE';
  agent.say({ commandResult: { commandId, instanceId: id, sequence, outcome, observation, runs } });
  await statusIs(poor.renter.api, id, 'stopped');
  await spent(poor, 17 * MICRO_A_MINUTE);
});

it('the run that goes on after a stop that timed out is charged to its end, though that is the next that is heard', async () => {
  const poor = await poorOf();
  const { agent, id } = poor;
  await poor.pass(10 * MINUTE_MS);
  agent.automatic = false;
  await ask(poor, 'POST', '/stop');
  await stopOf(poor);
  agent.disconnect();
  test.advance(30 * MINUTE_MS);
  expect(await poor.read()).toMatchObject({ status: 'running', error_code: 'stop_timed_out' });
  test.advance(10 * MINUTE_MS);
  const workload = agent.workloads.get(id);
  const exit = { code: 0, ranMs: 50 * MINUTE_MS };
  if (workload) Object.assign(workload, { state: 'WORKLOAD_STATE_STOPPED', exit });
  await agent.connect();
  agent.report(id);
  await statusIs(poor.renter.api, id, 'stopped');
  await spent(poor, 20 * MICRO_A_MINUTE);
});

it('nothing after the end of a balance is charged to one instance because another had not run so long', async () => {
  const poor = await poorOf(2);
  const { agent, id } = poor;
  const other = poor.ids[1] ?? '';
  agent.automatic = false;
  await poor.pass(2 * HOUR_MS - MINUTE_MS);
  // The other one ends. Its host says so only after the balance has run out, and before that, what goes on.
  const ended = agent.workloads.get(other);
  const exit = { code: 0, ranMs: 2 * HOUR_MS - MINUTE_MS };
  if (ended) Object.assign(ended, { state: 'WORKLOAD_STATE_STOPPED', exit });
  test.clock.advance(90_000);
  await agent.speak(id);
  test.advance(0);
  expect([(await poor.read()).status, (await poor.read(other)).status]).toEqual(['stopping', 'stopping']);
  agent.report(other);
  await statusIs(poor.renter.api, other, 'stopped');
  agent.done(await stopOf(poor));
  await eventually('both charges', async () => {
    test.core.workers.runAll();
    return (await poor.read(other)).spend_micro === 2 * GPU_MICRO - MICRO_A_MINUTE;
  });
  expect((await poor.read()).spend_micro).toBe(2 * GPU_MICRO);
});

it.each([
  ['ahead', HOUR_MS],
  ['back', -HOUR_MS],
])('a run is charged on while the wall clock is set %s', async (_, step) => {
  const poor = await poorOf();
  await poor.pass(10 * MINUTE_MS);
  test.clock.step(step);
  await poor.pass(10 * MINUTE_MS);
  await spent(poor, 20 * MICRO_A_MINUTE);
  test.clock.step(-step);
  await poor.pass(10 * MINUTE_MS);
  await spent(poor, 30 * MICRO_A_MINUTE);
  await test.signInOperator();
  await test.operator.post('/v1/operator/clock/confirm');
});

it('a destroy is charged up to the request, by what its answer tells of the last run', async () => {
  const poor = await poorOf();
  await poor.pass(10 * MINUTE_MS);
  test.clock.advance(25_000);
  await ask(poor, 'DELETE');
  await statusIs(poor.renter.api, poor.id, 'destroyed');
  await spent(poor, 10 * MICRO_A_MINUTE + 25 * MICRO_A_SECOND);
});

it('a host whose clock was an hour ahead once is charged for all that runs afterwards', async () => {
  const poor = await poorOf();
  const { agent, id } = poor;
  await poor.pass(10 * MINUTE_MS);
  const workload = agent.workloads.get(id);
  const startedAt = workload?.startedAt ?? 0;
  const say = (wrongMs: number) => Object.assign(workload ?? {}, { startedAt: startedAt - wrongMs });
  say(HOUR_MS);
  await poor.pass(MINUTE_MS);
  say(0);
  await poor.pass(10 * MINUTE_MS);
  await spent(poor, 21 * MICRO_A_MINUTE);
  // Another run after a boot, with the same mistake.
  agent.reboot(id);
  const again = workload?.startedAt ?? 0;
  Object.assign(workload ?? {}, { startedAt: again - HOUR_MS });
  await poor.pass(MINUTE_MS);
  Object.assign(workload ?? {}, { startedAt: again });
  await poor.pass(10 * MINUTE_MS);
  await spent(poor, 32 * MICRO_A_MINUTE);
  const starts = query.selectFrom('meter_intervals').select('run_began_at').where('instance_id', '=', id);
  const began = test.core.platform.store.transact((tx) => tx.all(starts)).map(({ run_began_at }) => run_began_at ?? 0);
  expect(Math.min(...began)).toBeGreaterThanOrEqual(Date.parse(String((await poor.read())['created_at'])));
});

it('a host that pulls for a day and then states a run of a day is paid for ten minutes before its last progress', async () => {
  const renter = await test.renter(48 * GPU_MICRO);
  const agent = await test.host({ gpus: 1, automatic: false });
  const offer_id = await test.offer(agent, 1, GPU_MICRO);
  const body = { offer_id, template_id: templateId, disk_gb: 10 };
  const { id } = await renter.api.post<InstanceBody>('/v1/instances', body);
  const provision = await eventually('the provision', () => agent.held.find(({ instanceId }) => instanceId === id));
  agent.accept(provision);
  for (let told = 0; told < 48; told++) {
    test.advance(HOUR_MS / 2 - MINUTE_MS);
    agent.say({ progress: { instanceId: id, kind: 'pulling', message: 'a little more' } });
    await agent.roundTrip();
  }
  test.advance(20 * MINUTE_MS);
  expect(await renter.api.get(`/v1/instances/${id}`)).toMatchObject({ status: 'creating', spend_micro: 0 });
  const { commandId, sequence } = provision;
  const runs = [{ runId: 'hidden', ranMs: 24 * HOUR_MS, endedMsAgo: 0 }];
  const outcome = { outcome: 'COMMAND_OUTCOME_FAILED', code: 'CONTAINER_FAILED', message: 'it failed' };
  agent.say({ commandResult: { commandId, instanceId: id, sequence, ...outcome, runs } });
  await statusIs(renter.api, id, 'error');
  test.core.workers.runAll();
  expect((await renter.api.get<InstanceBody>(`/v1/instances/${id}`)).spend_micro).toBe(30 * MICRO_A_MINUTE);
});
