import { afterAll, beforeAll, expect, it } from 'vitest';
import { DAY_MS } from '../../shared/time.js';
import { MOST_PURGED } from '../../control-plane/services/events/purge.js';
import { expiredTo } from '../../control-plane/services/events/read.js';
import { recordEvent, recordInstanceEvent } from '../../control-plane/services/events/record.js';
import { query, sql, statement } from '../../control-plane/store/sql.js';
import type { InstanceBody } from '../harness/api-client.js';
import { TestControlPlane, statusIs } from '../harness/control-plane.js';
import { recordCredits } from '../harness/event-reader.js';

let test: TestControlPlane;
beforeAll(async () => {
  test = await TestControlPlane.start();
});
afterAll(() => test.stop());

/** The numbers of the events that a stream has. */
const numbersOf = (stream: string) =>
  test.core.platform.store.transact((tx) =>
    tx
      .all(query.selectFrom('events').select('number').where('stream', '=', stream).orderBy('number'))
      .map(({ number }) => number),
  );
const expired = (stream: string) => test.core.platform.store.transact((tx) => expiredTo(tx, stream));
const credit = { amount_micro: 1, balance_micro: 0, reason: null };

it('events of no instance are deleted after 30 days, but for the newest of a stream', () => {
  recordCredits(test, 'one', 5);
  recordCredits(test, 'other', 1);
  test.advance(DAY_MS);
  recordCredits(test, 'one', 2);
  test.advance(29 * DAY_MS - 1);
  expect(numbersOf('one')).toEqual([1, 2, 3, 4, 5, 6, 7]);
  test.advance(60_000);
  expect(numbersOf('one')).toEqual([6, 7]);
  expect(expired('one')).toBe(5);
  expect(numbersOf('other')).toEqual([1]);
  expect(expired('other')).toBe(0);
  test.advance(2 * DAY_MS);
  expect(numbersOf('one')).toEqual([7]);
  recordCredits(test, 'one', 1);
  expect(numbersOf('one')).toEqual([7, 8]);
  test.advance(60_000);
  expect(numbersOf('one')).toEqual([8]);
});

it('what one run deletes is bounded; streams that are quiet for long do not keep it from the others', () => {
  const quiet = Array.from({ length: MOST_PURGED + 200 }, (_, index) => `quiet ${index}`);
  test.core.platform.store.transact((tx) => {
    for (const stream of quiet) recordEvent(tx, stream, 'billing.credited', 'x', credit);
  });
  test.clock.advance(1);
  recordCredits(test, 'busy', 2 * MOST_PURGED + 1);
  test.clock.advance(31 * DAY_MS);
  const left: number[] = [];
  for (let run = 0; run < 5; run++) {
    test.advance(1_000);
    left.push(numbersOf('busy').length);
  }
  expect(left[0]).toBe(2 * MOST_PURGED + 1);
  for (const [run, count] of left.entries()) expect((left[run - 1] ?? count) - count).toBeLessThanOrEqual(MOST_PURGED);
  expect(left.at(-1)).toBe(1);
  for (const stream of [quiet[0], quiet.at(-1)]) expect(numbersOf(stream ?? '')).toEqual([1]);
});

it('an instance keeps 1,000 events, for as long as it is there', async () => {
  await test.signInOperator();
  const renter = await test.renter();
  const offer_id = await test.offer(await test.host());
  const body = { offer_id, template_id: await test.template(), disk_gb: 10 };
  const { id } = await renter.api.post<InstanceBody>('/v1/instances', body);
  await statusIs(renter.api, id, 'running');
  const count = () =>
    test.core.platform.store.transact((tx) =>
      tx.all(query.selectFrom('events').select('number').where('instance_id', '=', id)),
    ).length;
  const note = (text: string) =>
    test.core.platform.store.transact((tx) =>
      recordInstanceEvent(tx, id, 'instance.noted', { kind: 'note', message: text }, {}),
    );
  const first = count();
  for (let index = first; index < 1_000; index++) note(`${index}`);
  expect(count()).toBe(1_000);
  const before = expired(renter.organizationId);
  note('one more');
  expect(count()).toBe(1_000);
  expect(expired(renter.organizationId)).toBeGreaterThan(before);
  test.advance(40 * DAY_MS);
  expect(count()).toBe(1_000);
});

it('a stream keeps a million events of no instance', () => {
  const stream = 'full';
  const insert = (number: number) =>
    test.core.platform.store.transact((tx) =>
      tx.run(
        statement(sql`
          INSERT INTO events (stream, number, epoch, at, type, subject, data)
          VALUES (${stream}, ${number}, 1, ${tx.now}, 'billing.credited', 'x', '{}')`),
      ),
    );
  for (const number of [1, 2, 1_000_000]) insert(number);
  recordCredits(test, stream, 1);
  expect(numbersOf(stream)).toEqual([2, 1_000_000, 1_000_001]);
  expect(expired(stream)).toBe(1);
  recordCredits(test, stream, 1);
  expect(numbersOf(stream)).toEqual([1_000_000, 1_000_001, 1_000_002]);
});
