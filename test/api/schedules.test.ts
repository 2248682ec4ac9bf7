import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { WEEKDAYS } from '../../control-plane/domain/instances/schedule.js';
import { query } from '../../control-plane/store/sql.js';
import { eventually } from '../../scripts/eventually.js';
import { statusIs } from '../harness/control-plane.js';
import { DAY_MS, ScheduleMarket, utc } from '../harness/schedules.js';
import { listening } from '../harness/told.js';

const NONE = { time_zone: null, entries: [], next: null };

let market: ScheduleMarket;

beforeAll(async () => {
  market = await ScheduleMarket.start();
});
afterAll(() => market.test.stop());

describe('a schedule', () => {
  it('is given, read, replaced and taken away', async () => {
    const { id } = await market.running();
    expect(await market.schedule(id)).toEqual(NONE);
    const week = utc(market.entry('stop', 30), market.entry('start', 90));
    const given = await market.put(id, week);
    expect(given).toMatchObject({ status: 200, body: { ...week, next: { action: 'stop', at: market.isoIn(30) } } });
    expect(await market.schedule(id)).toEqual(given.body);
    const other = utc(market.entry('start', 45));
    expect((await market.put(id, other)).body).toEqual({ ...other, next: { action: 'start', at: market.isoIn(45) } });
    expect((await market.drop(id)).status).toBe(204);
    expect((await market.drop(id)).status).toBe(204);
    expect(await market.schedule(id)).toEqual(NONE);
  });

  it('is of local time, summer and winter', async () => {
    const { id } = await market.running();
    const daily = (time_zone: string) => ({
      time_zone,
      entries: [{ action: 'stop', days: [...WEEKDAYS], at: '18:30' }],
    });
    const today = new Date(market.test.clock.now()).toISOString().slice(0, 10);
    expect((await market.put(id, daily('Europe/Berlin'))).body.next).toEqual({
      action: 'stop',
      at: `${today}T17:30:00.000Z`,
    });
    expect((await market.put(id, daily('Australia/Lord_Howe'))).body.next).toEqual({
      action: 'stop',
      at: `${today}T07:30:00.000Z`,
    });
    await market.drop(id);
  });

  it('of an API key is like that of a person', async () => {
    const { id } = await market.running();
    const { secret } = await market.renter.api.post<{ secret: string }>('/v1/api-keys', { name: 'schedules' });
    const api = market.test.api.as(secret);
    expect((await market.put(id, utc(market.entry('stop', 30)), api)).status).toBe(200);
    expect((await api.request('DELETE', `/v1/instances/${id}/schedule`)).status).toBe(204);
  });

  it('has twenty entries at most, and an instance has one schedule', async () => {
    const { id } = await market.running();
    const many = (count: number) =>
      utc(...Array.from({ length: count }, (_, index) => market.entry('stop', 60 + index)));
    for (const count of [20, 1, 20]) expect((await market.put(id, many(count))).status).toBe(200);
    expect((await market.put(id, many(21))).status).toBe(422);
    const count = query.selectFrom('instance_schedules').select('instance_id').where('instance_id', '=', id);
    expect(market.test.core.platform.store.transact((tx) => tx.all(count))).toHaveLength(1);
    await market.drop(id);
  });
});

describe('what is refused changes nothing:', () => {
  const good = { action: 'stop', days: ['monday'], at: '08:00' };
  let id: string;
  beforeAll(async () => {
    ({ id } = await market.running());
    await market.put(id, utc(market.entry('stop', 600)));
  });
  afterAll(() => market.drop(id));

  it.each<[string, string, unknown]>([
    ['an unknown time zone', 'time_zone', { time_zone: 'Mars/Olympus_Mons', entries: [good] }],
    ['an offset', 'time_zone', { time_zone: '+01:00', entries: [good] }],
    ['a very long name', 'time_zone', { time_zone: 'A'.repeat(65), entries: [good] }],
    ['no time zone', 'time_zone', { entries: [good] }],
    ['no entry', 'entries', { time_zone: 'UTC', entries: [] }],
    ['no day', 'entries.0.days', utc({ ...good, days: [] } as never)],
    ['a day twice', 'entries.0.days', utc({ ...good, days: ['monday', 'monday'] } as never)],
    ['an unknown day', 'entries.0.days.0', utc({ ...good, days: ['Monday'] } as never)],
    ['an unknown action', 'entries.0.action', utc({ ...good, action: 'destroy' } as never)],
    ['an hour that no day has', 'entries.0.at', utc({ ...good, at: '24:00' } as never)],
    ['a minute that no hour has', 'entries.0.at', utc({ ...good, at: '08:60' } as never)],
    ['a time with seconds', 'entries.0.at', utc({ ...good, at: '08:00:00' } as never)],
    ['an unknown field of an entry', 'entries.0.zone', utc({ ...good, zone: 'UTC' } as never)],
    ['an unknown field', 'enabled', { ...utc(good as never), enabled: true }],
    [
      'a start and a stop at the same time',
      'entries.1',
      utc(good as never, { action: 'start', days: ['sunday', 'monday'], at: '08:00' }),
    ],
  ])('%s', async (_name, path, body) => {
    const before = market.test.dump();
    const answer = await market.put(id, body);
    expect(answer).toMatchObject({ status: 422, body: { code: 'VALIDATION_FAILED' } });
    const { details } = answer.body as unknown as { details: { path: string }[] };
    expect(details.map((detail) => detail.path)).toContain(path);
    expect(market.test.dump()).toEqual(before);
  });

  it('an instance that is destroyed, or about to be', async () => {
    const made = await market.running();
    made.agent.automatic = false;
    await market.put(made.id, utc(market.entry('stop', 60)));
    await market.renter.api.request('DELETE', `/v1/instances/${made.id}`);
    const refused = async () => {
      const before = market.test.dump();
      const answer = await market.put(made.id, utc(market.entry('stop', 60)));
      expect(answer).toMatchObject({ status: 409, body: { code: 'INVALID_STATE' } });
      expect(market.test.dump()).toEqual(before);
    };
    await refused();
    expect(market.rowOf(made.id)).toBeUndefined();
    made.agent.done(await market.nextCommand(made.agent));
    await statusIs(market.renter.api, made.id, 'destroyed');
    await refused();
    expect(await market.schedule(made.id)).toEqual(NONE);
  });

  it('an instance of somebody else', async () => {
    const other = await market.test.renter(0);
    const before = market.test.dump();
    const answers = [
      await market.put(id, { time_zone: 'Nowhere', entries: [good] }, other.api),
      await other.api.request('GET', `/v1/instances/${id}/schedule`),
      await other.api.request('DELETE', `/v1/instances/${id}/schedule`),
    ];
    for (const answer of answers) expect(answer).toMatchObject({ status: 404, body: { code: 'INSTANCE_NOT_FOUND' } });
    expect(market.test.dump()).toEqual(before);
  });
});

describe('a schedule that is due is', () => {
  beforeAll(() => market.freshRenter());

  it('still carried out if it is replaced by one that has the same', async () => {
    const { agent, id } = await market.running();
    const same = utc(market.entry('stop', 1));
    await market.put(id, same);
    market.test.clock.advance(market.minuteIn(1) - market.test.clock.now());
    await market.put(id, { ...same, entries: [...same.entries, market.entry('start', 60)] });
    await market.pass(1_000, agent);
    await statusIs(market.renter.api, id, 'stopped');
    await market.drop(id);
  });

  it.each<[string, (id: string) => Promise<unknown>]>([
    ['replaced by another time', (id) => market.put(id, utc(market.entry('stop', 60)))],
    ['replaced by another action', (id) => market.put(id, utc(market.entry('start', 0)))],
    ['taken away', (id) => market.drop(id)],
  ])('not carried out if it is %s', async (_how, change) => {
    const { agent, id } = await market.running();
    await market.put(id, utc(market.entry('stop', 1)));
    market.test.clock.advance(market.minuteIn(1) - market.test.clock.now());
    await change(id);
    await market.pass(1_000, agent);
    expect((await market.read(id)).status).toBe('running');
    await market.drop(id);
  });

  it('not followed by what a new schedule would have done before it was given', async () => {
    const { agent, id, provision } = await market.creating();
    await market.put(id, utc(market.entry('stop', 1)));
    await market.passTo(market.minuteIn(10), agent);
    await market.put(id, utc(market.entry('stop', -5)));
    agent.automatic = true;
    agent.done(provision);
    await statusIs(market.renter.api, id, 'running');
    await market.pass(10_000, agent);
    expect((await market.read(id)).status).toBe('running');
    await market.drop(id);
  });

  it('over with the instance, also on a machine that is lost', async () => {
    const { agent, id } = await market.running();
    await market.put(id, utc(market.entry('stop', 1)));
    agent.close();
    await eventually('the host to be away', () => !market.isConnected(agent));
    await market.test.operator.post(`/v1/operator/machines/${agent.hostId}/lost`);
    expect((await market.read(id)).status).toBe('error');
    expect(market.rowOf(id)).toBeDefined();
    const told = listening(market.test, market.renter.organizationId);
    await market.passTo(market.minuteIn(1));
    await market.renter.api.request('DELETE', `/v1/instances/${id}`);
    await statusIs(market.renter.api, id, 'destroyed');
    expect(market.rowOf(id)).toBeUndefined();
    await market.pass(7 * DAY_MS);
    expect(told('instance.schedule_refused')).toEqual([]);
  });
});
