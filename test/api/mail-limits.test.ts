import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../shared/time.js';
import { recordEvent } from '../../control-plane/services/events/record.js';
import { query } from '../../control-plane/store/sql.js';
import { TestControlPlane, type Renter } from '../harness/control-plane.js';
import { mailsAreSettled, mailsOf } from '../harness/mails.js';
import { TestSmtp } from '../harness/smtp.js';

let smtp: TestSmtp;
let test: TestControlPlane;
let renter: Renter;

beforeAll(async () => {
  smtp = await TestSmtp.start();
  test = await TestControlPlane.start({ mail: smtp.settings });
});
afterAll(async () => {
  await smtp.stop();
  await test.stop();
});
beforeEach(async () => {
  // A mail that takes two days is not sent.
  await settled();
  test.clock.advance(2 * DAY_MS);
  await test.signInOperator();
  renter = await test.renter(0);
  test.advance(1_000);
  await settled();
  smtp.received.length = 0;
});

const statesOf = (userId: string) =>
  mailsOf(test)
    .filter(({ user_id }) => user_id === userId)
    .map(({ state }) => state);
const settled = () => mailsAreSettled(test);

function record(type: 'billing.paid' | 'billing.balance_low' | 'billing.disks_at_risk', dollars: number): void {
  const { store, clock } = test.core.platform;
  const balance_micro = dollars * 1_000_000;
  const at = new Date(clock.now() + HOUR_MS).toISOString();
  const data = {
    'billing.paid': { amount_micro: balance_micro, balance_micro, payment_id: 'pi' },
    'billing.balance_low': { balance_micro, lasts_until: at, hours: 1 },
    'billing.disks_at_risk': { balance_micro, destroyed_at: at, hours: 1, instances: 1 },
  }[type];
  store.transact((tx) => recordEvent(tx, renter.organizationId, type, 'organizations/x', data as never));
}

async function happens(...args: Parameters<typeof record>): Promise<void> {
  record(...args);
  test.advance(1_000);
  await settled();
}

describe('beyond five mails to one person in an hour', () => {
  it('the others become one digest, an hour after the first', async () => {
    for (let dollars = 1; dollars <= 8; dollars++) await happens('billing.paid', dollars);
    await happens('billing.balance_low', 9);
    expect(smtp.received).toHaveLength(5);
    expect(statesOf(renter.userId)).toEqual([...Array<string>(5).fill('sent'), ...Array<string>(4).fill('held')]);
    test.advance(50 * MINUTE_MS);
    await settled();
    expect(smtp.received).toHaveLength(5);
    test.advance(10 * MINUTE_MS);
    await settled();
    expect(smtp.received).toHaveLength(6);
    const { mail, to } = smtp.received[5] ?? {};
    expect(to).toBe(renter.email);
    expect(mail?.subject).toBe('4 more messages in one');
    for (const text of ['$6.00 for', '$7.00 for', '$8.00 for', 'lasts less than 1 hour']) {
      expect(mail?.text).toContain(text);
      expect(mail?.html).toContain(text);
    }
    expect(mail?.text).not.toContain('$5.00');
    // It warns, too, so its warnings can be ended.
    expect(mail?.headers.get('list')).toMatchObject({ 'unsubscribe-post': { name: 'List-Unsubscribe=One-Click' } });
    for (let minutes = 0; minutes < 90; minutes++) test.advance(MINUTE_MS);
    await settled();
    expect(smtp.received).toHaveLength(6);
    expect(statesOf(renter.userId).filter((state) => state === 'in_digest')).toHaveLength(4);
  });

  it('at most fifty wait; the digest says that there was more', async () => {
    for (let dollars = 1; dollars <= 200; dollars++) record('billing.paid', dollars);
    for (let run = 0; run < 25; run++) {
      test.advance(1_000);
      await settled();
    }
    const held = () => statesOf(renter.userId).filter((state) => state === 'held').length;
    expect(held()).toBeLessThanOrEqual(50);
    expect(held()).toBeGreaterThan(40);
    test.advance(HOUR_MS);
    await settled();
    expect(smtp.received).toHaveLength(6);
    expect(smtp.received[5]?.mail.subject).toBe('More than 50 more messages in one');
    expect(smtp.received[5]?.mail.text).toContain('There was more than this mail can tell.');
  });

  it('sign-ins are counted apart, so that nothing holds them up', async () => {
    for (let dollars = 1; dollars <= 8; dollars++) await happens('billing.paid', dollars);
    const credentials = { email: renter.email, password: 'a renter password' };
    await test.api.request('POST', '/v1/auth/sign-in', credentials, { 'X-Forwarded-For': '203.0.113.1' });
    test.advance(1_000);
    await settled();
    expect(smtp.received.at(-1)?.mail.subject).toBe('A sign-in to your account from a new address');
    for (let host = 2; host <= 9; host++)
      await test.api.request('POST', '/v1/auth/sign-in', credentials, { 'X-Forwarded-For': `203.0.113.${host}` });
    test.advance(1_000);
    await settled();
    expect(smtp.received).toHaveLength(10);
  });
});

it('of one event, a hundred members are told at most, admins first', async () => {
  const { store } = test.core.platform;
  const { organizationId: organization_id } = renter;
  store.transact((tx) => {
    for (let member = 0; member < 104; member++) {
      const id = tx.id();
      const user = { id, email: `${id}@example.com`, name: 'M', password_hash: '', is_operator: 0 as const };
      tx.run(query.insertInto('users').values({ ...user, created_at: tx.now }));
      const role = member === 103 ? ('admin' as const) : ('member' as const);
      tx.run(
        query.insertInto('memberships').values({ organization_id, user_id: id, role, joined_at: tx.now + member }),
      );
    }
  });
  const before = mailsOf(test).length;
  await happens('billing.balance_low', 1);
  const told = mailsOf(test).slice(before);
  expect(told).toHaveLength(100);
  const admins = await renter.api.get<{ items: { id: string; role: string }[] }>('/v1/orgs/current/members');
  const isTold = (id: string) => told.some(({ user_id }) => user_id === id);
  const of = (role: string) => admins.items.filter((member) => member.role === role).map(({ id }) => isTold(id));
  expect(of('admin')).toEqual([true, true]);
  expect(of('member').filter(Boolean)).toHaveLength(98);
});

it('the last twenty networks of a user are remembered, for half a year', async () => {
  const credentials = { email: renter.email, password: 'a renter password' };
  const known = () => {
    const networks = query.selectFrom('known_networks').select('network').where('user_id', '=', renter.userId);
    return test.core.platform.store.transact((tx) => tx.all(networks)).map(({ network }) => network);
  };
  for (let host = 1; host <= 25; host++) {
    test.clock.advance(1);
    await test.api.request('POST', '/v1/auth/sign-in', credentials, { 'X-Forwarded-For': `203.0.113.${host}` });
  }
  expect(known()).toHaveLength(20);
  expect(known()).toEqual(expect.arrayContaining(['203.0.113.6', '203.0.113.25']));
  expect(known()).not.toContain('203.0.113.5');
  test.advance(1_000);
  await settled();
  test.clock.advance(181 * DAY_MS);
  await test.signInOperator();
  test.advance(MINUTE_MS);
  expect(known()).toEqual([]);
  await settled();
});

describe('what a person has chosen', () => {
  const choose = (choices: object) => renter.api.request('PATCH', '/v1/me/mail', choices);
  const on = {
    low_balance: true,
    disks: true,
    money: true,
    caps: true,
    notices: true,
    security: true,
    invites: true,
    sends_mail: true,
  };

  it('is shown, changed, and heeded', async () => {
    expect(await renter.api.get('/v1/me/mail')).toEqual(on);
    expect(await choose({ money: false })).toMatchObject({ status: 200, body: { ...on, money: false } });
    await happens('billing.paid', 1);
    await happens('billing.balance_low', 2);
    await happens('billing.disks_at_risk', 3);
    expect(smtp.received.map(({ mail }) => mail.subject?.split(' ')[0])).toEqual(['The', 'Disks']);
    expect(statesOf(renter.userId)).toEqual(['sent', 'sent']);
    expect(await choose({ money: true, disks: false })).toMatchObject({ body: { ...on, disks: false } });
    await happens('billing.paid', 4);
    await happens('billing.disks_at_risk', 5);
    expect(smtp.received).toHaveLength(3);
    expect(await renter.api.get('/v1/me/mail')).toEqual({ ...on, disks: false });
    expect(await (await test.renter(0)).api.get('/v1/me/mail')).toEqual(on);
  });

  it('also counts for mails that wait already, in a digest as well', async () => {
    for (let dollars = 1; dollars <= 5; dollars++) await happens('billing.paid', dollars);
    await happens('billing.balance_low', 6);
    await happens('billing.disks_at_risk', 7);
    await choose({ low_balance: false });
    test.advance(HOUR_MS);
    await settled();
    expect(smtp.received).toHaveLength(6);
    expect(smtp.received[5]?.mail.text).toContain('Disks of');
    expect(smtp.received[5]?.mail.text).not.toContain('lasts less than');
  });

  it('cannot be that there are no mails about security', async () => {
    expect(await choose({ security: false })).toMatchObject({ status: 422, body: { code: 'VALIDATION_FAILED' } });
  });
});

describe('a link that ends mails', () => {
  const unsubscribeUrl = async () => {
    await happens('billing.balance_low', 1);
    const url = /\/v1\/mail\/unsubscribe\/[^\s>]+/.exec(smtp.received.at(-1)?.mail.text ?? '')?.[0];
    if (url === undefined) throw new Error('no link');
    return url;
  };
  const isOn = async () => (await renter.api.get<{ low_balance: boolean }>('/v1/me/mail')).low_balance;
  const post = (path: string, body = 'List-Unsubscribe=One-Click', type = 'application/x-www-form-urlencoded') =>
    fetch(test.url + path, { method: 'POST', body, headers: { 'Content-Type': type } });

  it('does so when a mail program posts to it, and not when somebody looks at it', async () => {
    const url = await unsubscribeUrl();
    for (const method of ['GET', 'HEAD']) {
      const page = await fetch(test.url + url, { method });
      expect(page.status).toBe(200);
      expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8');
      expect(page.headers.get('content-security-policy')).toContain("default-src 'none'");
      expect(page.headers.get('referrer-policy')).toBe('no-referrer');
      expect(page.headers.get('cache-control')).toBe('no-store');
      if (method === 'GET') expect(await page.text()).toContain('<form method="post"><button>');
    }
    expect(await isOn()).toBe(true);
    expect((await post(url)).status).toBe(200);
    expect(await isOn()).toBe(false);
    smtp.received.length = 0;
    await happens('billing.balance_low', 1);
    await happens('billing.disks_at_risk', 1);
    expect(smtp.received.map(({ mail }) => mail.subject?.split(' ')[0])).toEqual(['Disks']);
    // Again, by a browser, and with whatever is sent.
    expect((await post(url, '', 'application/x-www-form-urlencoded')).status).toBe(200);
    expect((await post(url, 'x', 'multipart/form-data; boundary=x')).status).toBe(200);
    expect((await post(url, 'x'.repeat(5_000))).status).toBe(413);
  });

  it('is for its user and its kind alone, and nobody can make one', async () => {
    const url = await unsubscribeUrl();
    const other = await test.renter(0);
    const forged = [
      url.replace(renter.userId, other.userId),
      url.replace('.low_balance.', '.disks.'),
      url.replace('.low_balance.', '.low_balance+disks.'),
      url.replace('.low_balance.', '.money.'),
      url.slice(0, -1),
      `${url}A`,
      url.replace(/.$/, (last) => (last === 'A' ? 'Q' : 'A')),
      '/v1/mail/unsubscribe/x',
      `/v1/mail/unsubscribe/${'x'.repeat(8_000)}`,
    ];
    const before = test.dump();
    for (const path of forged) {
      expect((await post(path)).status, path).toBe(404);
      expect((await fetch(test.url + path)).status, path).toBe(404);
    }
    expect(test.dump()).toEqual(before);
  });
});
