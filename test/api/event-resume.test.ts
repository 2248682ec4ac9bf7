import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { OPERATORS } from '../../control-plane/domain/event.js';
import { recordEvent } from '../../control-plane/services/events/record.js';
import { backUp, restore } from '../../control-plane/store/backup.js';
import { TestControlPlane, type Renter } from '../harness/control-plane.js';
import { EventReader, amountsOf, recordCredits, type ReceivedEvent } from '../harness/event-reader.js';
import { SEED } from '../harness/test-seed.js';

const EVENTS = 10_000;

let test: TestControlPlane;
let renter: Renter;
beforeAll(async () => {
  test = await TestControlPlane.start();
  renter = await test.renter(0);
});
afterAll(() => test.stop());

/** Numbers below `most`, which repeat with the seed. */
function random(): (most: number) => number {
  let state = SEED;
  return (most) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff;
    return Math.trunc((state / 0x80000000) * most);
  };
}

const newest = async () => (await renter.api.get<{ last_id: string }>('/v1/events?limit=1')).last_id;
const connect = (after: string) =>
  EventReader.open(`${test.url}/v1/events?after=${after}`, renter.api.token, { 'Last-Event-ID': after });
const upTo = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, index) => from + index);

/** Reads on after `after` until it has received the event of this amount. */
async function readTo(after: string, last: number): Promise<ReceivedEvent[]> {
  const reader = await connect(after);
  await reader.has(last);
  reader.kill();
  return reader.events;
}

it(`a reader that is killed and resumes at random sees each event once, in order (seed ${SEED})`, async () => {
  const below = random();
  const received: ReceivedEvent[] = [];
  let after = await newest();
  let recorded = 0;
  let connections = 0;
  const record = (count: number) => {
    recordCredits(test, renter.organizationId, Math.min(count, EVENTS - recorded), recorded + 1);
    recorded = Math.min(recorded + count, EVENTS);
  };
  record(2_000);
  for (let restarts = 0; received.length < EVENTS; connections++) {
    const reader = await connect(after);
    if (below(2) === 0) record(below(900));
    // Some are killed in the middle of a block, some before anything has come.
    await reader.has(Math.min(below(700), recorded - received.length));
    if (restarts < 3 && received.length > restarts * 3_000) {
      restarts += 1;
      await test.restart();
    }
    reader.kill();
    received.push(...reader.events);
    after = reader.lastId ?? after;
    if (received.length === recorded) record(1_500);
  }
  expect(connections).toBeGreaterThan(10);
  expect(amountsOf(received)).toEqual(upTo(1, EVENTS));
  expect(new Set(received.map(({ id }) => id)).size).toBe(EVENTS);
  expect(after).toBe(await newest());
});

it('a reader sees no gap and no repeat after an older backup was restored, or is told', async () => {
  const start = await newest();
  recordCredits(test, renter.organizationId, 300);
  const behind = await readTo(start, 200);
  const backup = join(test.databaseFile, '..', 'backup.db');
  backUp(test.databaseFile, backup);
  recordCredits(test, renter.organizationId, 300, 301);
  const ahead = await readTo(start, 500);
  await test.core.stop();
  restore(backup, test.databaseFile, test.clock.now());
  await test.boot();
  // What the backup has is there with the same ids; what came after it has happened otherwise.
  recordCredits(test, renter.organizationId, 250, 10_001);
  const after = behind[199]?.id ?? '';
  const rest = await readTo(after, 350);
  expect(amountsOf(rest)).toEqual([...upTo(201, 300), ...upTo(10_001, 10_250)]);
  const known = new Set(ahead.map(({ id }) => id));
  expect(rest.filter(({ id }) => known.has(id)).map(({ data }) => data.data['amount_micro'])).toEqual(upTo(201, 300));
  for (const lost of [ahead[300]?.id, ahead[499]?.id]) {
    const refused = await EventReader.refused(`${test.url}/v1/events?after=${lost}`, renter.api.token);
    expect(refused).toMatchObject({ status: 410, code: 'EVENTS_EXPIRED' });
    const page = await renter.api.request('GET', `/v1/events?after=${lost}`);
    expect(page).toMatchObject({ status: 410, body: { code: 'EVENTS_EXPIRED' } });
  }
});

it('a reader of the operators’ events is told when the store is a new one', async () => {
  const earlier = await TestControlPlane.start();
  const later = await TestControlPlane.start({ at: earlier.clock.now() + 1_000 });
  const machine = { machine_id: randomUUID(), machine_name: 'm' };
  for (const { core } of [earlier, later])
    core.platform.store.transact((tx) => {
      for (let count = 0; count < 3; count++) recordEvent(tx, OPERATORS, 'machine.back', 'machines/m', machine);
    });
  const { items } = await earlier.operator.get<{ items: { id: string }[] }>('/v1/operator/events');
  await earlier.restart();
  const [newest, , oldest] = items.map(({ id }) => `/v1/operator/events?after=${id}`);
  expect(await earlier.operator.get(newest ?? '')).toMatchObject({ items: [], has_more: false });
  for (const path of [newest, oldest])
    expect(await later.operator.request('GET', path ?? '')).toMatchObject({
      status: 410,
      body: { code: 'EVENTS_EXPIRED' },
    });
  for (const each of [earlier, later]) await each.stop();
});
