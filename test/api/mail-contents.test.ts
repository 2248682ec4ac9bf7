import LinkifyIt from 'linkify-it';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { HOUR_MS } from '../../shared/time.js';
import type { EventData } from '../../control-plane/domain/event.js';
import { recordEvent } from '../../control-plane/services/events/record.js';
import { query } from '../../control-plane/store/sql.js';
import { PUBLIC_URL, TestControlPlane, type Renter } from '../harness/control-plane.js';
import { mailsAreSettled } from '../harness/mails.js';
import { TestSmtp, type Received } from '../harness/smtp.js';

let smtp: TestSmtp;
let test: TestControlPlane;
let renter: Renter;
let restore: () => void;

beforeAll(async () => {
  smtp = await TestSmtp.start({ tls: 'starttls' });
  test = await TestControlPlane.start({ mail: smtp.settings });
  renter = await test.renter(0);
  test.advance(1_000);
  await mailsAreSettled(test);
  restore = test.snapshot();
});
beforeEach(() => {
  // More than an hour later, so that no limit of the test before applies.
  test.clock.advance(2 * HOUR_MS);
  smtp.received.length = 0;
  smtp.toRecipient = () => 'accept';
});
afterEach(async () => {
  await mailsAreSettled(test);
  restore();
});
afterAll(async () => {
  await smtp.stop();
  await test.stop();
});

const linkify = new LinkifyIt({ fuzzyLink: true, fuzzyEmail: true, fuzzyIP: true });

/** The text of HTML, as a browser shows it. */
function convertedText(markup: string): string {
  const text = markup.replace(/<[^>]*>/g, '\n');
  const entities = { '&lt;': '<', '&gt;': '>', '&quot;': '"', '&#39;': "'", '&amp;': '&' };
  return Object.entries(entities).reduce((shown, [entity, character]) => shown.replaceAll(entity, character), text);
}

type Mailed =
  | 'billing.balance_low'
  | 'billing.balance_exhausted'
  | 'billing.disks_at_risk'
  | 'billing.paid'
  | 'billing.payment_failed'
  | 'billing.spend_cap'
  | 'organization.suspended'
  | 'organization.restored'
  | 'organization.disks_at_risk'
  | 'machine.notice';

/** As whoever charges organizations records it. */
function happens<Type extends Mailed>(type: Type, data: EventData[Type], to = renter): void {
  const subject = `organizations/${to.organizationId}`;
  test.core.platform.store.transact((tx) => recordEvent(tx, to.organizationId, type, subject, data));
  test.advance(1_000);
}

async function only(): Promise<Received> {
  const [received, ...others] = await smtp.gets(1);
  expect(others).toEqual([]);
  if (!received) throw new Error('no mail');
  await mailsAreSettled(test);
  return received;
}

const inMs = (ms: number) => new Date(test.clock.now() + ms).toISOString();
const dayIn = (ms: number) => inMs(ms).slice(0, 'YYYY-MM-DD'.length);
const low = () => ({ balance_micro: 3_210_000, lasts_until: inMs(4 * HOUR_MS), hours: 4 });

/** What is true of every mail. */
function expectProper({ mail, raw, to, isEncrypted, user }: Received): void {
  expect({ isEncrypted, user }).toEqual({ isEncrypted: true, user: 'gpurent' });
  expect(mail.from?.value).toEqual([{ name: 'GPU market', address: 'noreply@gpus.example' }]);
  expect([mail.to].flat()[0]?.value.map(({ address }) => address)).toEqual([to]);
  expect(mail.messageId).toMatch(/^<[0-9a-f-]{36}@gpus\.example>$/);
  expect(mail.headers.get('auto-submitted')).toBe('auto-generated');
  expect(mail.date?.getTime()).toBeGreaterThan(Date.parse('2026-01-01'));
  expect(raw).toMatch(/^Content-Type: multipart\/alternative/m);
  const html = String(mail.html);
  expect(html).not.toMatch(/<(img|script|link|iframe|form)\b/i);
  // Links lead only here.
  const links = [...html.matchAll(/(?:href|src)="([^"]*)"/g)].map(([, url]) => url);
  expect(links.filter((url) => !url?.startsWith(`${PUBLIC_URL}/`))).toEqual([]);
  // It is read by people, who have a page for everything.
  expect(mail.text).not.toMatch(/\b(GET|POST|PUT|PATCH|DELETE) \//);
  for (const part of [mail.text, html]) {
    expect(part).toContain('What you can do:');
    expect(part).toContain(`${PUBLIC_URL}/docs`);
  }
}

describe('a mail of what has happened', () => {
  it.each<[Mailed, () => EventData[Mailed], RegExp, (string | (() => string))[]]>([
    [
      'billing.balance_low',
      low,
      /^The balance of "Renter's organization" lasts less than 4 hours$/,
      ['is $3.21', () => `until ${dayIn(4 * HOUR_MS)}`, 'all running instances are stopped', `${PUBLIC_URL}/billing`],
    ],
    [
      'billing.balance_exhausted',
      () => ({ balance_micro: -1 }),
      /^The balance of "Renter's organization" is used up$/,
      ['is -$0.01', 'running instances are stopped', `${PUBLIC_URL}/instances`],
    ],
    [
      'billing.disks_at_risk',
      () => ({ balance_micro: -6_000_000, destroyed_at: inMs(6 * HOUR_MS), hours: 6, instances: 1 }),
      /^Disks of "Renter's organization" will be destroyed in 6 hours$/,
      ['-$6.00', () => `1 stopped instance will be destroyed with everything on its disk at ${dayIn(6 * HOUR_MS)}`],
    ],
    [
      'billing.paid',
      () => ({ amount_micro: 25_000_000, balance_micro: 26_500_000, payment_id: 'pi_1' }),
      /^Payment received: \$25\.00 for "Renter's organization"$/,
      ['has paid $25.00', 'balance is $26.50 now', `${PUBLIC_URL}/billing?tab=transactions`],
    ],
    [
      'billing.payment_failed',
      () => ({ amount_micro: 25_000_000, balance_micro: 1_500_000, payment_id: 'pi_1' }),
      /^Payment failed: \$25\.00 for "Renter's organization"$/,
      ['Nothing was credited', 'balance is $1.50', `${PUBLIC_URL}/billing`],
    ],
    [
      'billing.spend_cap',
      () => ({ api_key_id: null, period: 'day', percent: 80, limit_micro: 10_000_000, spent_micro: 8_000_000 }),
      /^"Renter's organization" has used up 80 percent of the cap on the day \(UTC\)$/,
      ['has spent $8.00 of $10.00 for its instances', `${PUBLIC_URL}/billing`],
    ],
    [
      'billing.spend_cap',
      () => ({ api_key_id: 'KEY', period: 'month', percent: 100, limit_micro: 10_000_000, spent_micro: 10_000_000 }),
      /^"Renter's organization" has used up 100 percent of the cap on the month \(UTC\)$/,
      ['the API key KEY has started', 'What runs for it is stopped', `${PUBLIC_URL}/keys`],
    ],
    [
      'organization.suspended',
      () => ({ reason: 'it attacks others', disks_kept_until: inMs(48 * HOUR_MS) }),
      /^The organization "Renter's organization" is suspended$/,
      [
        'The reason: it attacks others',
        'nothing can be deployed or started',
        () => `Disks are kept until ${dayIn(48 * HOUR_MS)}`,
      ],
    ],
    [
      'organization.restored',
      () => ({ reason: 'a mistake' }),
      /^The organization "Renter's organization" is restored$/,
      ['The reason: a mistake', 'Nothing has been started', `${PUBLIC_URL}/instances`],
    ],
    [
      'organization.disks_at_risk',
      () => ({ reason: 'it attacks others', destroyed_at: inMs(6 * HOUR_MS), hours: 6, instances: 2 }),
      /^Disks of "Renter's organization" will be destroyed in 6 hours$/,
      [
        'is suspended',
        () => `2 stopped instances will be destroyed with everything on their disks at ${dayIn(6 * HOUR_MS)}`,
      ],
    ],
    [
      'machine.notice',
      () => ({ machine_id: 'm', machine_name: 'node-7', instance_ids: ['i'], message: 'We replace a <fan> tonight' }),
      /^About the machine "node-7", on which "Renter's organization" has instances$/,
      ['says of the machine "node-7": We replace a', 'has 1 instance on this machine'],
    ],
  ])('%s', async (type, data, subject, contains) => {
    happens(type, data());
    const texts = contains.map((text) => (typeof text === 'string' ? text : text()));
    const received = await only();
    expectProper(received);
    expect(received.to).toBe(renter.email);
    expect(received.mail.subject).toMatch(subject);
    for (const text of texts) {
      expect(received.mail.text).toContain(text);
      expect(received.mail.html).toContain(text.replaceAll('"', '&quot;'));
    }
  });

  it('opens the pages of its organization, whichever its reader has chosen last', async () => {
    happens('billing.balance_low', low());
    const { mail } = await only();
    const of = `active_organization=${renter.organizationId}`;
    expect(mail.text).toContain(`${PUBLIC_URL}/billing?${of}\n`);
    expect(mail.text).toContain(`${PUBLIC_URL}/instances?${of}\n`);
    smtp.received.length = 0;
    happens('billing.paid', { amount_micro: 1_000_000, balance_micro: 1, payment_id: 'pi_2' });
    expect((await only()).mail.html).toContain(`href="${PUBLIC_URL}/billing?tab=transactions&amp;${of}"`);
  });

  it('can be ended with one click if it warns, and not if it is about what has happened to money', async () => {
    happens('billing.balance_low', low());
    const { mail } = await only();
    const list = mail.headers.get('list') as unknown as { unsubscribe: { url: string } };
    expect(list.unsubscribe.url).toMatch(/^https:\/\/gpus\.example\/v1\/mail\/unsubscribe\/[\w.+-]+$/);
    expect(list).toMatchObject({ 'unsubscribe-post': { name: 'List-Unsubscribe=One-Click' } });
    expect(mail.text).toContain(list.unsubscribe.url);
    smtp.received.length = 0;
    happens('billing.paid', { amount_micro: 1_000_000, balance_micro: 1, payment_id: 'pi_5' });
    expect((await only()).raw).not.toMatch(/unsubscribe/i);
  });

  it('goes to every member who is concerned: of payments only to those who pay, of nothing to viewers', async () => {
    const guest = await test.renter(0);
    const { token } = await renter.api.post<{ token: string }>('/v1/orgs/current/invites', { email: guest.email });
    await guest.api.post(`/v1/invites/${token}/accept`);
    await smtp.gets(1);
    smtp.received.length = 0;
    happens('billing.balance_low', low());
    expect((await smtp.gets(2)).map(({ to }) => to).sort()).toEqual([renter.email, guest.email].sort());
    smtp.received.length = 0;
    happens('billing.paid', { amount_micro: 1_000_000, balance_micro: 1, payment_id: 'pi_3' });
    expect((await only()).to).toBe(renter.email);
    const becomes = (role: string) => renter.api.request('PATCH', `/v1/orgs/current/members/${guest.userId}`, { role });
    await becomes('billing');
    smtp.received.length = 0;
    happens('billing.paid', { amount_micro: 2_000_000, balance_micro: 1, payment_id: 'pi_4' });
    expect((await smtp.gets(2)).map(({ to }) => to).sort()).toEqual([renter.email, guest.email].sort());
    await becomes('viewer');
    smtp.received.length = 0;
    happens('billing.balance_low', { ...low(), hours: 1 });
    expect((await only()).to).toBe(renter.email);
  });

  it('of a notice does not go to somebody who wants none, and that of a suspension goes to everybody', async () => {
    const none = { notices: false, money: false, disks: false, low_balance: false };
    await renter.api.request('PATCH', '/v1/me/mail', none);
    happens('machine.notice', { machine_id: 'm', machine_name: 'node-7', instance_ids: ['i'], message: 'a notice' });
    happens('organization.suspended', { reason: 'abuse', disks_kept_until: inMs(48 * HOUR_MS) });
    expect((await only()).mail.subject).toContain('is suspended');
  });

  it('does not go to somebody who has left meanwhile', async () => {
    const guest = await test.renter(0);
    const { token } = await renter.api.post<{ token: string }>('/v1/orgs/current/invites', { email: guest.email });
    await guest.api.post(`/v1/invites/${token}/accept`);
    await smtp.gets(1);
    smtp.received.length = 0;
    smtp.toRecipient = () => ({ code: 451, text: 'later' });
    happens('billing.balance_low', low());
    await mailsAreSettled(test);
    await guest.api.delete(`/v1/me/organizations/${renter.organizationId}`);
    smtp.toRecipient = () => 'accept';
    test.advance(2 * 60_000);
    expect((await only()).to).toBe(renter.email);
  });
});

describe('an invitation', () => {
  it('is mailed with its token, to the invited address alone', async () => {
    const answer = await renter.api.post<{ token: string; mailed: boolean }>('/v1/orgs/current/invites', {
      email: 'Guest@example.com',
      role: 'admin',
    });
    expect(answer.mailed).toBe(true);
    const received = await only();
    expectProper(received);
    expect(received.to).toBe('Guest@example.com');
    expect(received.mail.subject).toBe('Invitation to an organization that rents GPUs');
    const accept = `${PUBLIC_URL}/accept-invite?token=${answer.token}`;
    expect(received.mail.text).toContain(accept);
    expect(received.mail.html).toContain(accept);
    expect(received.mail.text).toContain(`"${renter.email.replace('@', '[at]').replace('.', '[.]')}" invites you`);
    expect(received.mail.text).toContain('They call it "Renter\'s organization".');
    expect(received.mail.text).toContain('an admin of it');
    expect(received.raw).not.toMatch(/^List-Unsubscribe/im);
    const signedUp = await test.api.request('POST', '/v1/auth/sign-up', {
      email: 'guest@example.com',
      password: 'a fine password',
      name: 'Guest',
      invite_token: answer.token,
    });
    expect(signedUp).toMatchObject({ status: 202, body: { mailed: 'if_possible' } });
  });

  it.each([
    'win.evil.example',
    'https://evil.example/x',
    'evil.com/claim',
    'www.evil.com',
    'localhost//evil',
    'ｅｖｉｌ．ｃｏｍ',
    'evil。com',
    'evil․com',
    'mailto:me@evil.com',
    'help@evil.com',
    '//evil.com',
    'http:evil.com',
    '"</p><a href="https://evil.com">x</a>',
    `${'long '.repeat(7)}evil.com evil.com`,
  ])('quotes words of strangers, with nothing in them that is a link: %s', async (words) => {
    const name = `Free ${words}`.slice(0, 64);
    const { store } = test.core.platform;
    const renamed = query.updateTable('organizations').set({ name }).where('id', '=', renter.organizationId);
    const inviter = query.updateTable('users').set({ email: 'www.evil.com@evil.com' });
    store.transact((tx) => {
      tx.run(renamed);
      tx.run(inviter.where('id', '=', renter.userId));
    });
    await renter.api.post('/v1/orgs/current/invites', { email: 'a@example.com' });
    const { mail } = await only();
    expect(mail.subject).toBe('Invitation to an organization that rents GPUs');
    const shown = convertedText(String(mail.html));
    for (const text of [mail.text ?? '', shown]) {
      const quotes = [...text.matchAll(/"([^"]*)"/g)].map(([, quote = '']) => quote);
      expect(quotes).toHaveLength(2);
      expect(Math.max(...quotes.map((quote) => Array.from(quote).length))).toBeLessThanOrEqual(40);
      expect(quotes[1]).toContain('Free');
      for (const { url } of linkify.match(text) ?? []) expect(url.startsWith(PUBLIC_URL), url).toBe(true);
    }
    const hrefs = [...String(mail.html).matchAll(/href="([^"]*)"/g)].map(([, href = '']) => href);
    expect(hrefs.every((href) => href.startsWith(`${PUBLIC_URL}/`) || href === PUBLIC_URL)).toBe(true);
  });

  it('leaves no token in the database, not before it is sent and not after', async () => {
    smtp.toRecipient = () => ({ code: 451, text: 'later' });
    const { token } = await renter.api.post<{ token: string }>('/v1/orgs/current/invites', { email: 'a@example.com' });
    const { store } = test.core.platform;
    const invites = query.selectFrom('mails').select(['state', 'content_encrypted']).where('kind', '=', 'invite');
    const contents = () => store.transact((tx) => tx.all(invites));
    await mailsAreSettled(test);
    expect(contents()).toMatchObject([{ state: 'queued', content_encrypted: expect.any(Buffer) as Buffer }]);
    expect(contents()[0]?.content_encrypted?.toString('latin1')).not.toContain(token);
    expect(test.everythingStored()).not.toContain(token);
    smtp.toRecipient = () => 'accept';
    test.advance(2 * 60_000);
    await only();
    test.advance(1_000);
    expect(contents()).toEqual([{ state: 'sent', content_encrypted: null }]);
  });

  it('that is withdrawn before it was sent is not mailed', async () => {
    smtp.toRecipient = () => ({ code: 451, text: 'later' });
    const { invite } = await renter.api.post<{ invite: { id: string } }>('/v1/orgs/current/invites', {
      email: 'a@example.com',
    });
    await mailsAreSettled(test);
    await renter.api.delete(`/v1/orgs/current/invites/${invite.id}`);
    smtp.toRecipient = () => 'accept';
    test.advance(2 * 60_000);
    happens('billing.balance_low', low());
    expect((await only()).to).toBe(renter.email);
  });
});

describe('a sign-in', () => {
  const from = (address: string) => ({ 'X-Forwarded-For': address });
  const signIn = async (address: string) => {
    const credentials = { email: renter.email, password: 'a renter password' };
    expect((await test.api.request('POST', '/v1/auth/sign-in', credentials, from(address))).status).toBe(200);
    test.advance(1_000);
  };

  it('from a new address is told, once, and cannot be switched off', async () => {
    await signIn('203.0.113.9');
    const received = await only();
    expectProper(received);
    expect(received.to).toBe(renter.email);
    expect(received.mail.subject).toBe('A sign-in to your account from a new address');
    expect(received.mail.text).toContain('from the address 203.0.113.9');
    expect(received.mail.text).toContain(`${PUBLIC_URL}/profile`);
    expect(received.raw).not.toMatch(/unsubscribe/i);
    await signIn('203.0.113.9');
    await signIn('203.0.113.10');
    expect(await smtp.gets(2)).toHaveLength(2);
    expect(smtp.received.map(({ mail }) => /address (\S+)\./.exec(mail.text ?? '')?.[1])).toEqual([
      '203.0.113.9',
      '203.0.113.10',
    ]);
  });

  it('from the address of the sign-up is told nobody, also when that session has ended', async () => {
    await renter.api.post('/v1/auth/sign-out');
    await signIn('127.0.0.1');
    await signIn('203.0.113.11');
    expect((await only()).mail.text).toContain('203.0.113.11');
  });
});

describe('names that renters have chosen', () => {
  const rename = (name: string) =>
    test.core.platform.store.transact((tx) =>
      tx.run(query.updateTable('organizations').set({ name }).where('id', '=', renter.organizationId)),
    );

  it('break no header', async () => {
    rename('Evil\r\nBcc: victim@example.com\r\n\r\n<h1>body</h1>\u202egpj');
    happens('billing.balance_low', low());
    const { mail, raw, to } = await only();
    expect(to).toBe(renter.email);
    expect(mail.bcc).toBeUndefined();
    expect(mail.cc).toBeUndefined();
    expect(raw).not.toMatch(/^Bcc:/im);
    expect(mail.subject).toBe('The balance of "Evil Bcc: victim[at]example[.]com <h1>b…" lasts less than 4 hours');
  });

  it('are text in HTML', async () => {
    rename(`<script>alert('1')</script> & "<a href='https://evil.example'>"`);
    happens('billing.balance_low', low());
    const received = await only();
    expectProper(received);
    const html = String(received.mail.html);
    expect(html).toContain('&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt; &amp; &#39;&lt;a href=…&quot;');
    expect(received.mail.text).toContain(`"<script>alert('1')</script> & '<a href=…"`);
  });

  it('are cut where they are long', async () => {
    rename('x'.repeat(5_000));
    happens('billing.balance_low', low());
    expect((await only()).mail.subject).toBe(`The balance of "${'x'.repeat(39)}…" lasts less than 4 hours`);
  });
});
