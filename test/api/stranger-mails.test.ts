import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { DAY_MS, MINUTE_MS } from '../../shared/time.js';
import { query } from '../../control-plane/store/sql.js';
import { eventually } from '../../scripts/eventually.js';
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

describe('invitations', () => {
  interface Made {
    code?: string;
    invite: { id: string };
    token: string;
    mailed: boolean;
  }
  let guests = 0;
  const stranger = () => `stranger${++guests}@example.com`;
  const invite = async (from: Renter, email = stranger(), headers = {}) => {
    const answer = await from.api.request<Made>('POST', '/v1/orgs/current/invites', { email }, headers);
    expect(answer.status).toBe(201);
    expect(answer.body.token).toMatch(/^inv_[0-9a-f]{48}$/);
    return answer.body;
  };
  const withdraw = ({ api }: Renter, { invite: { id } }: Made) => api.delete(`/v1/orgs/current/invites/${id}`);
  /** Makes invitations and withdraws them at once. Returns how many of them are mailed. */
  const mailedOf = async (from: Renter, count: number) => {
    let mailed = 0;
    for (let made = 0; made < count; made++) {
      const each = await invite(from);
      mailed += Number(each.mailed);
      await withdraw(from, each);
    }
    return mailed;
  };

  it('of somebody who has never paid are mailed five times a day, whatever is withdrawn, left and made again', async () => {
    const [admin, heir] = [await test.renter(0), await test.renter(0)];
    expect(await mailedOf(admin, 3)).toBe(3);
    const { id } = await admin.api.post<{ id: string }>('/v1/orgs', { name: 'Second' });
    expect(await mailedOf({ ...admin, api: admin.api.in(id) }, 4)).toBe(2);
    const { token } = await invite({ ...admin, api: admin.api.in(id) }, heir.email);
    await heir.api.post(`/v1/invites/${token}/accept`);
    await admin.api.request('PATCH', `/v1/orgs/current/members/${heir.userId}`, { role: 'admin' }, { 'X-Org-Id': id });
    await admin.api.delete(`/v1/me/organizations/${id}`);
    expect(await mailedOf(admin, 2)).toBe(0);
    test.clock.advance(DAY_MS);
    expect(await mailedOf(admin, 6)).toBe(5);
  });

  it('get no further by ever new organizations: one account makes twenty a day, also if it leaves them', async () => {
    const { api, userId } = await test.renter(0);
    // Others are admins there, so it can leave.
    const leave = () =>
      test.core.platform.store.transact((tx) => tx.run(query.deleteFrom('memberships').where('user_id', '=', userId)));
    const make = () => api.request<{ id: string; limit?: number }>('POST', '/v1/orgs', { name: 'New' });
    // The first came with the account.
    for (let made = 1; made < 20; made++) {
      expect((await make()).status).toBe(201);
      leave();
    }
    expect(await make()).toMatchObject({ status: 409, body: { code: 'LIMIT_REACHED', limit: 20 } });
    await settled();
    test.clock.advance(DAY_MS);
    expect((await make()).status).toBe(201);
  });

  it('of somebody whose address is not confirmed, too; of others fifty times', async () => {
    expect(await mailedOf(await test.renter(), 52)).toBe(50);
    const unconfirmed = await test.renter();
    const { store } = test.core.platform;
    const user = query.updateTable('users').set({ email_verified_at: null }).where('id', '=', unconfirmed.userId);
    store.transact((tx) => tx.run(user));
    expect(await mailedOf(unconfirmed, 6)).toBe(5);
  });

  it('to one address are mailed three times a day by those who have never paid, ten times by all', async () => {
    const email = stranger();
    const mailed: boolean[] = [];
    for (const credit of [0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1])
      mailed.push((await invite(await test.renter(credit), mailed.length === 3 ? email.toUpperCase() : email)).mailed);
    expect(mailed).toEqual([true, true, true, false, ...Array<boolean>(7).fill(true), false]);
  });

  it('and sign-ups from one network are mailed a hundred times a day; a sign-up says so, to every address alike', async () => {
    const [network, headers] = ['203.0.113.77', { 'X-Forwarded-For': '203.0.113.77' }];
    const { store } = test.core.platform;
    const send = (kind: 'invite' | 'sign_up', count: number) =>
      store.transact((tx) => {
        const mail = { kind, user_id: null, is_known: 0 as const, address: 'x@example.com', network };
        for (let sent = 0; sent < count; sent++)
          tx.run(query.insertInto('mails_to_strangers').values({ id: tx.id(), ...mail, created_at: tx.now }));
      });
    const signUp = (email: string, from = headers) => {
      const request = { email, password: 'a fine password', name: 'N' };
      return test.api.request<Record<string, unknown>>('POST', '/v1/auth/sign-up', request, from);
    };
    send('invite', 99);
    send('sign_up', 99);
    expect((await invite(renter, stranger(), headers)).mailed).toBe(true);
    expect((await invite(renter, stranger(), headers)).mailed).toBe(false);
    expect((await invite(renter, stranger(), { 'X-Forwarded-For': '203.0.113.78' })).mailed).toBe(true);
    expect((await signUp(stranger())).status).toBe(202);
    const before = test.dump();
    const refused = [await signUp(stranger()), await signUp(renter.email)];
    expect(refused).toMatchObject(Array(2).fill({ status: 409, body: { code: 'LIMIT_REACHED', limit: 100 } }));
    expect(refused[0]?.body['message']).toBe(refused[1]?.body['message']);
    expect(test.dump()).toEqual(before);
    expect((await signUp(stranger(), { 'X-Forwarded-For': '203.0.113.78' })).status).toBe(202);
    await settled();
    test.clock.advance(DAY_MS);
    test.advance(MINUTE_MS);
    expect(test.dump()['mails_to_strangers']).toMatch(/^0 rows/);
  });

  it('of an organization that is suspended before they are sent are not mailed', async () => {
    smtp.toRecipient = () => ({ code: 451, text: 'later' });
    await invite(renter);
    await settled();
    await test.operator.post(`/v1/operator/organizations/${renter.organizationId}/suspend`, { reason: 'spam' });
    smtp.toRecipient = () => 'accept';
    test.advance(2 * MINUTE_MS);
    await settled();
    expect(smtp.received.map(({ to }) => to)).toEqual([renter.email]);
  });

  /** Eight of one sender, then one of another, then what somebody waits for. */
  const flood = async () => {
    const [busy, other] = [await test.renter(), await test.renter()];
    await settled();
    smtp.received.length = 0;
    for (let count = 0; count < 8; count++) await invite(busy);
    await invite(other, 'awaited@example.com');
    await test.api.post('/v1/auth/password-reset', { email: renter.email });
    test.advance(1_000);
  };
  const sentTo = () => smtp.received.map(({ to }) => to);

  it('that wait come after what is urgent, and those of senders in turn', async () => {
    smtp.toRecipient = (address) => (address.startsWith('renter') ? 'accept' : { code: 451, text: 'later' });
    await flood();
    await settled();
    smtp.toRecipient = () => 'accept';
    await test.api.post('/v1/auth/password-reset', { email: renter.email });
    test.advance(2 * MINUTE_MS);
    await settled();
    const order = sentTo();
    expect(order.filter((to) => !to.startsWith('renter'))).toHaveLength(9);
    expect(order.lastIndexOf(renter.email)).toBeLessThan(5);
    expect(order.filter((to) => !to.startsWith('renter')).indexOf('awaited@example.com')).toBeLessThan(4);
  });

  it('hold up nothing of others, also where the server never answers to them', async () => {
    smtp.toMail = (to) => (to.startsWith('stranger') ? 'hang' : 'accept');
    await flood();
    const isSent = (to: string) => mailsOf(test).some(({ address, state }) => address === to && state === 'sent');
    await eventually('the others', () => isSent(renter.email) && isSent('awaited@example.com'));
    expect(sentTo().filter((to) => to.startsWith('stranger'))).toHaveLength(2);
    smtp.toMail = () => 'accept';
    for (const minutes of [2, 10]) {
      test.advance(minutes * MINUTE_MS);
      await settled();
    }
    expect(statesOf(renter.userId)).toContain('sent');
  });

  describe('that an address wants no more by mail', () => {
    const post = (path: string) => fetch(test.url + path, { method: 'POST' });
    const own = async (guest: Renter) =>
      (await guest.api.get<{ items: { id: string; organization: string }[] }>('/v1/me/invites')).items;

    it('are made, and shown to their address, which can have the mails again', async () => {
      const guest = await test.renter(0);
      await invite(renter, guest.email.toUpperCase());
      await settled();
      const text = smtp.received.at(-1)?.mail.text ?? '';
      const path = /No more invitations by mail: \S+?(\/v1\/mail\/unsubscribe\/\S+)/.exec(text)?.[1] ?? '';
      const page = await fetch(test.url + path);
      expect([page.status, await page.text()]).toEqual([200, expect.stringContaining('no more invitations by mail?')]);
      expect(await guest.api.get('/v1/me/mail')).toMatchObject({ invites: true });
      expect((await post(path.replace(/.$/, (last) => (last === 'A' ? 'Q' : 'A')))).status).toBe(404);
      expect((await post(path)).status).toBe(200);
      expect((await post(path)).status).toBe(200);
      expect(await guest.api.get('/v1/me/mail')).toMatchObject({ invites: false });

      const other = await test.renter();
      test.clock.advance(1);
      expect((await invite(other, guest.email)).mailed).toBe(false);
      const [newest] = await own(guest);
      expect(newest).toMatchObject({ organization: "Renter's organization", role: 'member' });
      const stolen = await renter.api.request('POST', `/v1/me/invites/${newest?.id}/accept`);
      expect(stolen).toMatchObject({ status: 404, body: { code: 'INVITE_NOT_FOUND' } });
      const joined = await guest.api.post<{ id: string }>(`/v1/me/invites/${newest?.id}/accept`);
      expect(joined.id).toBe(other.organizationId);

      const settings = await guest.api.request('PATCH', '/v1/me/mail', { invites: true });
      expect(settings.body).toMatchObject({ invites: true });
      expect((await invite(await test.renter(), guest.email)).mailed).toBe(true);
    });

    it('are not sent either where they wait, and shown to nobody whose address is not confirmed', async () => {
      const guest = await test.renter(0);
      smtp.toRecipient = () => ({ code: 451, text: 'later' });
      await invite(renter, guest.email);
      await settled();
      await guest.api.request('PATCH', '/v1/me/mail', { invites: false });
      smtp.toRecipient = () => 'accept';
      test.advance(2 * MINUTE_MS);
      await settled();
      expect(smtp.received).toEqual([]);
      expect(await own(guest)).toHaveLength(1);
      const user = query.updateTable('users').set({ email_verified_at: null }).where('id', '=', guest.userId);
      test.core.platform.store.transact((tx) => tx.run(user));
      expect(await own(guest)).toEqual([]);
    });
  });
});
