import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { query } from '../../control-plane/store/sql.js';
import type { InstanceBody } from '../harness/api-client.js';
import { eventually } from '../../scripts/eventually.js';
import { advanceUntil } from '../harness/advance-until.js';
import { statusIs, type Renter } from '../harness/control-plane.js';
import type { FakeAgent } from '../harness/fake-agent.js';
import { CREDIT_MICRO, DAY_MS, MINUTE_MS, ScheduleMarket, utc, type Rented } from '../harness/schedules.js';
import { listening } from '../harness/told.js';
import type { WireCommand } from '../harness/wire.js';

let market: ScheduleMarket;

beforeAll(async () => {
  market = await ScheduleMarket.start();
});
afterAll(() => market.test.stop());

describe('what is due', () => {
  beforeAll(() => market.freshRenter());

  it('a stop is carried out at its time, not before, and a start of a week later follows', async () => {
    const { agent, id } = await market.running();
    await market.put(id, utc(market.entry('stop', 30), market.entry('start', 40)));
    const due = market.minuteIn(30);
    await market.passTo(due - 1, agent);
    expect((await market.read(id)).status).toBe('running');
    await market.passTo(due, agent);
    await statusIs(market.renter.api, id, 'stopped');
    expect((await market.kinds(id)).slice(0, 2)).toEqual(['stopped', 'schedule_stop']);
    expect((await market.schedule(id)).next).toEqual({
      action: 'start',
      at: new Date(due + 10 * MINUTE_MS).toISOString(),
    });
    await market.passTo(due + 10 * MINUTE_MS, agent);
    await statusIs(market.renter.api, id, 'running');
    expect((await market.kinds(id)).slice(0, 2)).toEqual(['running', 'schedule_start']);
    await market.pass(1_000, agent);
    expect(market.rowOf(id)).toMatchObject({
      next_at: due + 7 * DAY_MS,
      look_at: due + 7 * DAY_MS,
      start_command: null,
    });
    await market.drop(id);
  });

  it('a start of what runs, and a stop of what is stopped, are nothing', async () => {
    const [up, down] = [await market.running(), await market.stopped()];
    const told = listening(market.test, market.renter.organizationId);
    await market.put(up.id, utc(market.entry('start', 5)));
    await market.put(down.id, utc(market.entry('stop', 5)));
    await market.passTo(market.minuteIn(5), up.agent, down.agent);
    await market.pass(10_000, up.agent, down.agent);
    expect([(await market.read(up.id)).status, (await market.read(down.id)).status]).toEqual(['running', 'stopped']);
    expect(told()).toEqual([]);
    expect(market.rowOf(up.id)?.next_at).toBe(market.minuteIn(0) + 7 * DAY_MS);
    for (const { id } of [up, down]) await market.drop(id);
  });

  it('a stop waits for a deploy that is under way', async () => {
    const { agent, id, provision } = await market.creating();
    await market.put(id, utc(market.entry('stop', 1)));
    await market.passTo(market.minuteIn(1), agent);
    await market.pass(10 * MINUTE_MS, agent);
    expect((await market.read(id)).status).toBe('creating');
    agent.automatic = true;
    agent.done(provision);
    await statusIs(market.renter.api, id, 'running');
    await market.pass(5_000, agent);
    await statusIs(market.renter.api, id, 'stopped');
    expect(await market.kinds(id)).toContain('schedule_stop');
    await market.drop(id);
  });

  it('a start waits for a stop that is under way', async () => {
    const { agent, id } = await market.running();
    agent.automatic = false;
    await market.put(id, utc(market.entry('stop', 1), market.entry('start', 2)));
    await market.passTo(market.minuteIn(1), agent);
    const stop = await market.nextCommand(agent);
    await market.passTo(market.minuteIn(1), agent);
    await market.pass(MINUTE_MS, agent);
    expect((await market.read(id)).status).toBe('stopping');
    agent.automatic = true;
    agent.done(stop);
    await statusIs(market.renter.api, id, 'stopped');
    await market.pass(5_000, agent);
    await statusIs(market.renter.api, id, 'running');
    await market.drop(id);
  });

  it('is a release of the GPUs, too, while payments are frozen', async () => {
    const poor = await market.test.renter(CREDIT_MICRO);
    const agent = await market.test.host({ gpus: 1 });
    const body = { offer_id: await market.test.offer(agent), template_id: market.templateId, disk_gb: 10 };
    const { id } = await poor.api.post<InstanceBody>('/v1/instances', body);
    await statusIs(poor.api, id, 'running');
    await market.put(id, utc(market.entry('stop', 1)), poor.api);
    await market.test.operator.post(`/v1/operator/organizations/${poor.organizationId}/dispute`);
    await market.passTo(market.minuteIn(1), agent);
    expect(await statusIs(poor.api, id, 'stopped')).toMatchObject({ gpus_released: true });
  });

  it('at once for many is carried out for fifty in each run, for those first that have waited longest', async () => {
    const agent = await market.test.host({ gpus: 60 });
    agent.automatic = true;
    const offer_id = await market.test.offer(agent);
    const ids: string[] = [];
    const apis = new Map<string, Renter['api']>();
    for (const { api } of [
      await market.test.renter(CREDIT_MICRO),
      await market.test.renter(CREDIT_MICRO),
      await market.test.renter(CREDIT_MICRO),
    ])
      for (let count = 0; count < 20; count++) {
        const body = { offer_id, template_id: market.templateId, disk_gb: 10 };
        const { id } = await api.post<InstanceBody>('/v1/instances', body);
        apis.set(id, api);
        ids.push(id);
      }
    for (const id of ids) await statusIs(apis.get(id) ?? market.renter.api, id, 'running');
    const last = ids.slice(0, 30);
    for (const id of ids) await market.put(id, utc(market.entry('stop', last.includes(id) ? 2 : 1)), apis.get(id));
    agent.automatic = false;
    const stopping = () =>
      market.test.core.platform.store
        .transact((tx) => tx.all(query.selectFrom('instances').select('id').where('status', '=', 'stopping')))
        .map(({ id }) => id);
    await market.passTo(market.minuteIn(2), agent);
    const first = stopping();
    expect(first).toHaveLength(50);
    expect(ids.filter((id) => !last.includes(id) && !first.includes(id))).toEqual([]);
    await market.pass(1_000, agent);
    expect(stopping()).toHaveLength(60);
    agent.close();
  });

  it('for one that fails holds up no other, and is tried again after a minute', async () => {
    const [broken, fine] = [await market.running(), await market.running()];
    for (const { id } of [broken, fine]) await market.put(id, utc(market.entry('stop', 1)));
    market.changeRow(broken.id, { time_zone: 'Mars/Olympus_Mons' });
    expect(await market.schedule(broken.id)).toMatchObject({ time_zone: 'Mars/Olympus_Mons', next: null });
    await market.passTo(market.minuteIn(1), broken.agent, fine.agent);
    await statusIs(market.renter.api, fine.id, 'stopped');
    expect(market.test.core.platform.workerRuns.list().find(({ name }) => name === 'schedules')).toMatchObject({
      failing: true,
    });
    market.changeRow(broken.id, { time_zone: 'UTC' });
    await market.pass(MINUTE_MS - 1_000, broken.agent);
    expect((await market.read(broken.id)).status).toBe('running');
    await market.pass(1_000, broken.agent);
    await statusIs(market.renter.api, broken.id, 'stopped');
    for (const { id } of [broken, fine]) await market.drop(id);
  });
});

describe('a start that is refused is an event, and is not tried again:', () => {
  beforeAll(() => market.freshRenter());

  const dispute = (method: string) =>
    market.test.operator.request(method, `/v1/operator/organizations/${market.renter.organizationId}/dispute`);

  /** Lets a start become due; `refuse` sees to it that it is refused. Answers the event. */
  async function refused(
    made: Rented,
    refuse: (command: WireCommand) => void = () => {},
    hosts: FakeAgent[] = [made.agent],
  ): Promise<Record<string, unknown>> {
    const { agent, id } = made;
    const told = listening(market.test, market.renter.organizationId);
    agent.automatic = false;
    agent.held.length = 0;
    await market.put(id, utc(market.entry('start', 1)));
    await market.passTo(market.minuteIn(1), ...hosts);
    if ((await market.read(id)).status === 'starting') refuse(await market.nextCommand(agent));
    const passing = { clock: market.test, stepMs: 1_000, parties: hosts.map((host) => () => host.roundTrip()) };
    const events = await advanceUntil('the event', passing, () => {
      const found = told('instance.schedule_refused');
      return found.length > 0 && found;
    });
    expect(events).toHaveLength(1);
    expect(events[0]?.subject).toBe(`instances/${id}`);
    expect((await market.kinds(id))[0]).toBe('schedule_refused');
    expect((await market.schedule(id)).next).toMatchObject({ action: 'start' });
    for (const ms of [1_000, MINUTE_MS]) await market.pass(ms, ...hosts);
    expect(told('instance.schedule_refused')).toEqual([]);
    expect(market.rowOf(id)).toMatchObject({ start_command: null });
    await market.drop(id);
    agent.automatic = true;
    return events[0]?.data ?? {};
  }
  const told = (code: string, message = '') => ({
    action: 'start',
    code,
    kind: 'schedule_refused',
    message: expect.stringContaining(message) as string,
  });

  it('without the balance', async () => {
    const made = await market.stopped();
    market.test.setBalance(market.renter.organizationId, 500_000);
    expect(await refused(made)).toEqual(told('INSUFFICIENT_BALANCE', 'its schedule could not start it: '));
    market.test.setBalance(market.renter.organizationId, CREDIT_MICRO);
    expect((await market.read(made.id)).status).toBe('stopped');
  });

  it('and leaves everything else as it was', async () => {
    const { agent, id } = await market.stopped();
    market.test.setBalance(market.renter.organizationId, 500_000);
    await market.put(id, utc(market.entry('start', 1)));
    await market.passTo(market.minuteIn(1) - 1, agent);
    const before = market.test.dump();
    await market.passTo(market.minuteIn(1), agent);
    const after = market.test.dump();
    const changed = Object.keys(after).filter((table) => after[table] !== before[table]);
    expect(changed.sort()).toEqual(['events', 'instance_schedules']);
    market.test.setBalance(market.renter.organizationId, CREDIT_MICRO);
    await market.drop(id);
  });

  it('while payments are frozen', async () => {
    const made = await market.stopped();
    await dispute('POST');
    await eventually('the release', async () => (await market.read(made.id))['gpus_released']);
    expect(await refused(made)).toEqual(told('PAYMENTS_FROZEN'));
    await dispute('DELETE');
  });

  it('without the host', async () => {
    const made = await market.stopped();
    made.agent.disconnect();
    await eventually('the host to be away', () => !market.isConnected(made.agent));
    expect(await refused(made, undefined, [])).toEqual(told('HOST_UNREACHABLE'));
  });

  it('without the GPUs', async () => {
    const made = await market.stopped();
    await dispute('POST');
    await eventually('the release', async () => (await market.read(made.id))['gpus_released']);
    await dispute('DELETE');
    const other = await market.test.renter(CREDIT_MICRO);
    const body = { offer_id: made.offerId, template_id: market.templateId, disk_gb: 10 };
    const taken = await other.api.post<InstanceBody>('/v1/instances', body);
    await statusIs(other.api, taken.id, 'running');
    expect(await refused(made)).toEqual(told('CAPACITY_UNAVAILABLE'));
  });

  it('during maintenance', async () => {
    const made = await market.stopped();
    await market.test.operator.request('PUT', `/v1/operator/machines/${made.agent.hostId}/maintenance`, {
      starts_at: market.isoIn(1),
      ends_at: market.isoIn(60),
    });
    expect(await refused(made)).toEqual(told('START_REFUSED', 'maintenance'));
  });

  it('by the host', async () => {
    const made = await market.stopped();
    const refuse = (command: WireCommand) => made.agent.refuse(command, 'BUSY', 'not now');
    expect(await refused(made, refuse)).toEqual(told('START_REFUSED', 'not now'));
    expect((await market.read(made.id)).status).toBe('stopped');
  });

  it('without an answer in ten seconds, and is undone', async () => {
    const made = await market.stopped();
    expect(await refused(made)).toEqual(told('START_UNAVAILABLE'));
    expect((await market.read(made.id)).status).toBe('stopped');
    expect(await market.kinds(made.id)).toContain('start_unavailable');
  });

  it('of an instance in error', async () => {
    const made = await market.running();
    made.agent.exit(made.id, { code: 1 });
    await statusIs(market.renter.api, made.id, 'error');
    expect(await refused(made)).toEqual(told('INVALID_STATE', 'the instance is error'));
  });

  it('unless the host answers within ten seconds', async () => {
    const { agent, id } = await market.stopped();
    agent.automatic = false;
    const events = listening(market.test, market.renter.organizationId);
    await market.put(id, utc(market.entry('start', 1)));
    await market.passTo(market.minuteIn(1), agent);
    const command = await market.nextCommand(agent);
    await market.pass(9_000, agent);
    agent.accept(command);
    const passing = { clock: market.test, stepMs: 100, parties: [() => agent.roundTrip()] };
    await advanceUntil('the answer', passing, () => market.rowOf(id)?.start_command === null);
    await market.pass(MINUTE_MS, agent);
    expect((await market.read(id)).status).toBe('starting');
    agent.done(command);
    await statusIs(market.renter.api, id, 'running');
    expect(events('instance.schedule_refused')).toEqual([]);
    await market.drop(id);
  });
});
