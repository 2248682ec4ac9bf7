import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { HOUR_MS, MINUTE_MS } from '../../shared/time.js';
import { recordEvent } from '../../control-plane/services/events/record.js';
import { query } from '../../control-plane/store/sql.js';
import { eventually } from '../../scripts/eventually.js';
import { TestControlPlane, type Renter } from '../harness/control-plane.js';
import { memoryFolder } from '../harness/memory-folder.js';
import { isMailing, mailsAreSettled, mailsOf } from '../harness/mails.js';
import { TestSmtp } from '../harness/smtp.js';

let smtp: TestSmtp;
let test: TestControlPlane;
let renter: Renter;

beforeEach(async () => {
  smtp = await TestSmtp.start();
  test = await TestControlPlane.start({ mail: smtp.settings, folder: memoryFolder('gpurent-mail-') });
  renter = await test.renter(0);
  test.advance(1_000);
  await mailsAreSettled(test);
  smtp.received.length = 0;
});
afterEach(async () => {
  await smtp.stop();
  await test.stop();
});

/** Records that a renter has paid this many dollars, and lets the workers run. */
function paid(dollars: number, to: Renter = renter): void {
  const data = { amount_micro: dollars * 1_000_000, balance_micro: 1, payment_id: `pi_${dollars}` };
  const subject = `organizations/${to.organizationId}`;
  test.core.platform.store.transact((tx) => recordEvent(tx, to.organizationId, 'billing.paid', subject, data));
  test.advance(1_000);
}

const rows = () => mailsOf(test);
const states = () => rows().map(({ state }) => state);
const subjects = () => smtp.received.map(({ mail }) => mail.subject ?? '');
const stateIs = (...wanted: string[]) =>
  eventually(`the states ${wanted.join()}`, () => JSON.stringify(states()) === JSON.stringify(wanted));
const attemptsAre = (count: number) =>
  eventually(`${count} attempts`, () => rows()[0]?.attempts === count && !isMailing(test));

describe('the same mail is never made twice', () => {
  it('however often the worker runs, and over a restart', async () => {
    paid(5);
    await stateIs('sent');
    test.advance(1_000);
    await test.restart();
    for (let run = 0; run < 5; run++) test.advance(1_000);
    expect(subjects()).toEqual(['Payment received: $5.00 for "Renter\'s organization"']);
    expect(states()).toEqual(['sent']);
  });

  it('and what happens while the control plane is down is told after its start', async () => {
    const { store } = test.core.platform;
    const data = { amount_micro: 7_000_000, balance_micro: 1, payment_id: 'pi_7' };
    store.transact((tx) => recordEvent(tx, renter.organizationId, 'billing.paid', 'organizations/x', data));
    expect(states()).toEqual([]);
    await test.restart();
    test.advance(1_000);
    await stateIs('sent');
    expect(subjects()).toHaveLength(1);
  });

  it('and what is older than a day is not told at all', async () => {
    const { store } = test.core.platform;
    const data = { amount_micro: 7_000_000, balance_micro: 1, payment_id: 'pi_7' };
    store.transact((tx) => recordEvent(tx, renter.organizationId, 'billing.paid', 'organizations/x', data));
    test.advance(25 * HOUR_MS);
    test.advance(1_000);
    expect(states()).toEqual([]);
    paid(8);
    await stateIs('sent');
    expect(subjects()).toEqual([expect.stringContaining('$8.00')]);
  });

  it('also where the same event is read a second time', async () => {
    paid(5);
    await stateIs('sent');
    test.core.platform.store.transact((tx) => tx.run(query.deleteFrom('mail_positions')));
    paid(6);
    await stateIs('sent', 'sent');
    expect(subjects().map((subject) => /\$\d/.exec(subject)?.[0])).toEqual(['$5', '$6']);
  });
});

describe('a crash between the acceptance of a mail and its record', () => {
  /** From now on, what became of a mail cannot be written, as after a kill. */
  function loseRecords(): () => void {
    const { store } = test.core.platform;
    const transact = store.transact.bind(store);
    store.transact = (work) =>
      transact((tx) =>
        work({
          ...tx,
          run: (statement) => {
            const { sql: text } = statement.compile();
            if (/update "mails" set .*"finished_at"/.test(text)) throw new Error('killed');
            return tx.run(statement);
          },
        }),
      );
    return () => (store.transact = transact);
  }

  it('leads to one repeat with the same Message-ID, and never to a third', async () => {
    const restore = loseRecords();
    paid(5);
    await smtp.gets(1);
    await eventually('the lost record', () => test.logged(50).some((line) => line.includes('cannot be recorded')));
    restore();
    expect(rows()).toMatchObject([{ state: 'queued', attempts: 1, unanswered: 1 }]);
    test.advance(5 * MINUTE_MS);
    expect(smtp.received).toHaveLength(1);

    await test.restart();
    const again = loseRecords();
    test.advance(5 * MINUTE_MS);
    const [first, second] = await smtp.gets(2);
    expect(second?.mail.messageId).toBe(first?.mail.messageId);
    expect(second?.raw.replace(/^.*boundary.*$|^----.*$/gm, '')).toBe(
      first?.raw.replace(/^.*boundary.*$|^----.*$/gm, ''),
    );
    await eventually(
      'the lost record',
      () => test.logged(50).filter((line) => line.includes('cannot be recorded')).length === 2,
    );
    again();
    expect(rows()).toMatchObject([{ state: 'queued', attempts: 2, unanswered: 2 }]);
    for (let hours = 0; hours < 30; hours++) test.advance(HOUR_MS);
    expect(states()).toEqual(['failed']);
    expect(smtp.received).toHaveLength(2);
  });
});

describe('a mail that the server', () => {
  it('refuses for good (5xx) is given up at once', async () => {
    smtp.toRecipient = () => ({ code: 550, text: 'no such user here' });
    paid(5);
    await stateIs('failed');
    expect(rows()).toMatchObject([{ attempts: 1, content_encrypted: null }]);
    expect(test.logged(40).join('\n')).toContain('no such user here');
    smtp.toRecipient = () => 'accept';
    for (let hours = 0; hours < 25; hours++) test.advance(HOUR_MS);
    expect(smtp.received).toEqual([]);
  });

  it('refuses after its text (554) is given up, too', async () => {
    smtp.toMail = () => ({ code: 554, text: 'spam' });
    paid(5);
    await stateIs('failed');
  });

  it('does not take now (4xx) is tried again, later and later, for a day', async () => {
    smtp.toRecipient = () => ({ code: 451, text: 'greylisted' });
    paid(5);
    await attemptsAre(1);
    const times: number[] = [];
    const begin = test.clock.now();
    for (;;) {
      const { state, attempts = 0, next_attempt_at = 0 } = rows()[0] ?? {};
      if (state !== 'queued') break;
      test.advance(next_attempt_at - test.clock.now() - 1);
      expect(rows()[0]?.attempts).toBe(attempts);
      test.advance(1);
      times.push(Math.round((test.clock.now() - begin) / MINUTE_MS));
      await mailsAreSettled(test);
    }
    expect(times).toEqual([1, 6, 21, 81, 261, 621, 981, 1341]);
    expect(states()).toEqual(['failed']);
    expect(smtp.received).toEqual([]);
  });

  it('takes at the second attempt is sent once', async () => {
    let tries = 0;
    smtp.toMail = () => (++tries === 1 ? { code: 452, text: 'disk full' } : 'accept');
    paid(5);
    await attemptsAre(1);
    test.advance(MINUTE_MS);
    await stateIs('sent');
    const [first, second] = await smtp.gets(2);
    expect(second?.mail.messageId).toBe(first?.mail.messageId);
  });
});

describe('a server that is away', () => {
  it('is asked less and less, holds up nothing else, and gets everything when it is back', async () => {
    await smtp.stop();
    const others = [await test.renter(0), await test.renter(0), await test.renter(0), await test.renter(0)];
    for (const [index, other] of others.entries()) paid(index + 1, other);
    await eventually('the failure', () => test.logged(40).some((line) => line.includes('unreachable')));
    expect(states()).toEqual(['queued', 'queued', 'queued', 'queued']);
    for (let minutes = 0; minutes < 3 * 60; minutes++) {
      test.advance(MINUTE_MS);
      await eventually('nothing on its way', () => !isMailing(test));
    }
    const tries = test.logged(40).filter((line) => line.includes('unreachable')).length;
    expect(tries).toBeGreaterThan(10);
    expect(tries).toBeLessThan(60);
    await smtp.back();
    test.advance(5 * MINUTE_MS);
    await eventually('the first', () => states().includes('sent'));
    await eventually('nothing on its way', () => !isMailing(test));
    test.advance(MINUTE_MS);
    await stateIs('sent', 'sent', 'sent', 'sent');
    expect(smtp.received).toHaveLength(4);
  });

  it('for more than a day gets nothing old', async () => {
    await smtp.stop();
    paid(5);
    await eventually('the failure', () => test.logged(40).some((line) => line.includes('unreachable')));
    test.advance(24 * HOUR_MS);
    await stateIs('failed');
    await smtp.back();
    test.advance(HOUR_MS);
    expect(smtp.received).toEqual([]);
  });

  it('that never answers is asked by four at once at most that are no security, and requests are answered meanwhile', async () => {
    smtp.toMail = () => 'hang';
    const others: Renter[] = [];
    for (let index = 0; index < 8; index++) others.push(await test.renter(0));
    for (const other of others) paid(5, other);
    await eventually('four', () => smtp.received.length === 4);
    expect((await renter.api.request('GET', '/v1/orgs/current')).status).toBe(200);
    expect(smtp.mostAtOnce).toBe(4);
    // Their time is over; what they became is not known.
    smtp.toMail = () => 'accept';
    test.advance(2 * MINUTE_MS);
    await eventually('the others', () => states().filter((state) => state === 'sent').length === 4);
    test.advance(10 * MINUTE_MS);
    await eventually('all', () => states().every((state) => state === 'sent'));
    expect(smtp.received).toHaveLength(12);
    expect(smtp.mostAtOnce).toBe(4);
  });
});

it('uses a connection for several mails', async () => {
  const others = [renter, await test.renter(0), await test.renter(0)];
  for (const [index, other] of others.entries()) {
    paid(5, other);
    await smtp.gets(index + 1);
    await eventually('the record', () => states().every((state) => state === 'sent'));
  }
  expect(smtp.connections).toBe(1);
});

it('counts what was sent and given up, and says for how long a mail has waited', async () => {
  const scrape = async () => (await fetch(`${test.url}/metrics`)).text();
  const sentIn = (shown: string) => Number(/^gpurent_mails_total\{outcome="sent"\} (\d+)$/m.exec(shown)?.[1]);
  const before = sentIn(await scrape());
  paid(5);
  await stateIs('sent');
  smtp.toRecipient = () => ({ code: 550, text: 'no' });
  paid(6);
  await stateIs('sent', 'failed');
  smtp.toRecipient = () => ({ code: 450, text: 'later' });
  paid(7);
  await eventually('the attempt', () => rows()[2]?.attempts === 1 && !isMailing(test));
  test.clock.advance(30_000);
  const shown = await scrape();
  expect(sentIn(shown)).toBe(before + 1);
  expect(shown).toContain('gpurent_mails_total{outcome="failed"} 1');
  expect(shown).toMatch(/gpurent_mail_oldest_seconds 3[01]\b/);
});

it('forgets finished mails after a week', async () => {
  paid(5);
  await stateIs('sent');
  test.advance(7 * 24 * HOUR_MS + MINUTE_MS);
  expect(rows()).toEqual([]);
});

it('gives up a mail that cannot be read or addressed, and sends the others', async () => {
  const other = await test.renter(0);
  smtp.toRecipient = () => ({ code: 450, text: 'later' });
  for (const to of [renter, other]) paid(5, to);
  await mailsAreSettled(test);
  const { store } = test.core.platform;
  const change = (changes: object, userId: string) =>
    store.transact((tx) => tx.run(query.updateTable('mails').set(changes).where('user_id', '=', userId)));
  change({ content_encrypted: Buffer.from('nonsense, which nobody has encrypted') }, renter.userId);
  smtp.toRecipient = () => 'accept';
  test.advance(MINUTE_MS);
  await stateIs('failed', 'sent');
  const odd = 'a@example.com, b@example.com';
  store.transact((tx) => tx.run(query.updateTable('users').set({ email: odd }).where('id', '=', renter.userId)));
  paid(6);
  await stateIs('failed', 'sent', 'failed');
  expect(smtp.received).toHaveLength(1);
  expect(test.logged(50).join('\n')).toContain('its address is not one that can be mailed to');
});

describe('a user who is removed', () => {
  it('gets no mails that wait, and nothing of them is kept', async () => {
    smtp.toRecipient = () => ({ code: 450, text: 'later' });
    paid(5);
    await attemptsAre(1);
    await test.operator.delete(`/v1/operator/users/${renter.userId}`);
    smtp.toRecipient = () => 'accept';
    test.advance(HOUR_MS);
    expect(rows()).toEqual([]);
    const networks = query.selectFrom('known_networks').selectAll().where('user_id', '=', renter.userId);
    expect(test.core.platform.store.transact((tx) => tx.all(networks))).toEqual([]);
    expect(smtp.received).toEqual([]);
  });
});
