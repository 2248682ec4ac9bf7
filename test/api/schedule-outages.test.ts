import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { WEEKDAYS } from '../../control-plane/domain/instances/schedule.js';
import { query } from '../../control-plane/store/sql.js';
import { statusIs } from '../harness/control-plane.js';
import type { FakeAgent } from '../harness/fake-agent.js';
import { pretendFull } from '../harness/full-disk.js';
import { DAY_MS, HOUR_MS, MINUTE_MS, ScheduleMarket, utc } from '../harness/schedules.js';
import { listening } from '../harness/told.js';

let market: ScheduleMarket;

beforeAll(async () => {
  market = await ScheduleMarket.start();
});
afterAll(() => market.test.stop());

it('on a full disk, a stop is carried out, and a start waits for room', async () => {
  await market.freshRenter();
  const { agent, id } = await market.running();
  await market.put(id, utc(market.entry('stop', 1), market.entry('start', 2)));
  const makeRoom = pretendFull(market.test.core);
  await market.passTo(market.minuteIn(1), agent);
  await statusIs(market.renter.api, id, 'stopped');
  await market.pass(5 * MINUTE_MS, agent);
  expect((await market.read(id)).status).toBe('stopped');
  makeRoom();
  await market.pass(10_000, agent);
  await statusIs(market.renter.api, id, 'running');
  await market.drop(id);
});

describe('after the control plane was away', () => {
  beforeAll(() => market.freshRenter());

  /** The control plane is down for so long, and its hosts are back afterwards. */
  async function away(ms: number, ...agents: FakeAgent[]): Promise<void> {
    for (const agent of agents) agent.disconnect();
    await market.test.core.stop();
    market.test.clock.advance(ms);
    await market.test.boot();
    await market.test.signInOperator();
    for (const agent of agents) await agent.connect();
    market.test.core.workers.runAll();
  }

  it('only the newest action is carried out: a stop also days later, at once', async () => {
    const { agent, id } = await market.running();
    await market.put(id, utc(market.entry('start', 1), market.entry('stop', 2)));
    await away(3 * DAY_MS, agent);
    await statusIs(market.renter.api, id, 'stopped');
    expect((await market.kinds(id)).filter((kind) => kind.startsWith('schedule'))).toEqual(['schedule_stop']);
    await market.drop(id);
    await market.pass(3 * MINUTE_MS, agent);
  });

  it('a start is carried out within an hour, once hosts can be connected again', async () => {
    const { agent, id } = await market.stopped();
    await market.put(id, utc(market.entry('stop', 1), market.entry('start', 2)));
    await away(50 * MINUTE_MS, agent);
    await market.pass(MINUTE_MS, agent);
    expect((await market.read(id)).status).toBe('stopped');
    await market.pass(MINUTE_MS + 5_000, agent);
    await statusIs(market.renter.api, id, 'running');
    await market.drop(id);
  });

  it('a start that is more than an hour late is missed', async () => {
    const { agent, id } = await market.stopped();
    const told = listening(market.test, market.renter.organizationId);
    await market.put(id, utc(market.entry('stop', 1), market.entry('start', 2)));
    const due = market.isoIn(2);
    await away(HOUR_MS + 3 * MINUTE_MS, agent);
    await market.pass(3 * MINUTE_MS, agent);
    expect((await market.read(id)).status).toBe('stopped');
    const events = told('instance.schedule_refused');
    expect(events.map(({ data }) => data)).toEqual([
      {
        action: 'start',
        code: 'SCHEDULE_MISSED',
        kind: 'schedule_refused',
        message: `its schedule could not start it: the start was due at ${due} and could not be tried within an hour`,
      },
    ]);
    await market.drop(id);
  });

  it('a start whose host had not answered is followed to its end', async () => {
    const { agent, id } = await market.stopped();
    agent.automatic = false;
    const told = listening(market.test, market.renter.organizationId);
    await market.put(id, utc(market.entry('start', 1)));
    await market.passTo(market.minuteIn(1), agent);
    await market.nextCommand(agent);
    expect(market.rowOf(id)?.start_command).not.toBeNull();
    await away(30_000);
    await market.pass(MINUTE_MS);
    expect((await market.read(id)).status).toBe('starting');
    await market.pass(2 * MINUTE_MS);
    expect((await market.read(id)).status).toBe('stopped');
    expect(told('instance.schedule_refused').map(({ data }) => data['code'])).toEqual(['START_UNAVAILABLE']);
    await market.drop(id);
  });

  it('and was restored, nothing is done before the host has said how the instance is', async () => {
    const { agent, id } = await market.running();
    agent.disconnect();
    await market.put(id, utc(market.entry('stop', 1)));
    market.test.pretendRestored();
    await market.passTo(market.minuteIn(1));
    await market.pass(10 * MINUTE_MS);
    expect((await market.read(id)).status).toBe('running');
    await agent.connect();
    await market.pass(5_000, agent);
    await statusIs(market.renter.api, id, 'stopped');
    await market.drop(id);
  });

  it('with other time zones, each schedule is looked at again', async () => {
    const { id } = await market.running();
    const { body } = await market.put(id, utc(market.entry('start', 60)));
    const week = { next_at: market.test.clock.now() + 7 * DAY_MS, look_at: market.test.clock.now() + 7 * DAY_MS };
    market.changeRow(id, week);
    await away(0);
    expect(market.rowOf(id)).toMatchObject(week);
    const version = query.updateTable('meta').set({ value: '1999a' }).where('key', '=', 'zones_version');
    market.test.core.platform.store.transact((tx) => tx.run(version));
    await away(0);
    const next_at = Date.parse(body.next?.at ?? '');
    expect(market.rowOf(id)).toMatchObject({ next_at, look_at: next_at });
    await market.drop(id);
  });
});

describe('while the clock must be confirmed', () => {
  beforeAll(() => market.freshRenter());

  const confirm = () => market.test.operator.post('/v1/operator/clock/confirm');
  const step = async (ms: number) => {
    market.test.advance(1_000);
    market.test.clock.step(ms);
    market.test.advance(1_000);
  };

  it('nothing is carried out; then what is due by the clock is', async () => {
    const { agent, id } = await market.running();
    await market.put(id, utc(market.entry('stop', 120)));
    await step(3 * HOUR_MS);
    await market.pass(MINUTE_MS, agent);
    expect((await market.read(id)).status).toBe('running');
    await confirm();
    await market.pass(1_000, agent);
    await statusIs(market.renter.api, id, 'stopped');
    await market.drop(id);
  });

  it('and was set back, what was done by the wrong clock is done again at its time', async () => {
    const { agent, id } = await market.running();
    const due = market.minuteIn(60);
    await market.put(id, utc({ ...market.entry('stop', 60), days: [...WEEKDAYS] }));
    await market.passTo(due, agent);
    await statusIs(market.renter.api, id, 'stopped');
    await market.renter.api.post(`/v1/instances/${id}/start`);
    await statusIs(market.renter.api, id, 'running');
    await step(-2 * HOUR_MS);
    expect(market.rowOf(id)?.next_at).toBe(due + DAY_MS);
    await confirm();
    await market.pass(1_000, agent);
    expect(market.rowOf(id)).toMatchObject({ next_at: due, look_at: due });
    await market.passTo(due - 1, agent);
    expect((await market.read(id)).status).toBe('running');
    await market.passTo(due, agent);
    await statusIs(market.renter.api, id, 'stopped');
    await market.drop(id);
  });

  it('a step of less than a minute repeats nothing', async () => {
    const { agent, id } = await market.running();
    await market.put(id, utc(market.entry('stop', 1)));
    await market.passTo(market.minuteIn(1), agent);
    await statusIs(market.renter.api, id, 'stopped');
    await market.renter.api.post(`/v1/instances/${id}/start`);
    await statusIs(market.renter.api, id, 'running');
    market.test.clock.step(-30_000);
    for (const ms of [1_000, 30_000, 30_000]) await market.pass(ms, agent);
    expect((await market.read(id)).status).toBe('running');
    await market.drop(id);
  });
});
