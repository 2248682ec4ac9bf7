import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { parseConfig } from '../../control-plane/config.js';
import type { Mail } from '../../control-plane/domain/mail/mail.js';
import type { SmtpSettings } from '../../control-plane/mail/settings.js';
import { SmtpTransport } from '../../control-plane/mail/smtp.js';
import { recordEvent } from '../../control-plane/services/events/record.js';
import { query } from '../../control-plane/store/sql.js';
import { TestControlPlane } from '../harness/control-plane.js';
import { ManualClock } from '../harness/manual-clock.js';
import { TestSmtp } from '../harness/smtp.js';

const PROGRAM = fileURLToPath(new URL('../../dist/bundle/control-plane.js', import.meta.url));

const folder = mkdtempSync(join(tmpdir(), 'gpurent-mail-'));
const running: TestSmtp[] = [];
afterEach(async () => {
  for (const smtp of running.splice(0)) await smtp.stop();
});
afterAll(() => rmSync(folder, { recursive: true }));

async function server(options: Parameters<typeof TestSmtp.start>[0] = {}): Promise<TestSmtp> {
  const smtp = await TestSmtp.start(options);
  running.push(smtp);
  return smtp;
}

const MAIL: Mail = {
  id: '00000000-0000-4000-8000-000000000001',
  to: 'you@example.com',
  subject: 'Hello',
  text: 'Text',
  html: '<p>',
  createdAt: 0,
  unsubscribeUrl: null,
};

/** What becomes of a mail with settings of these for others. */
async function outcomeOf(
  smtp: TestSmtp,
  changes: Partial<SmtpSettings> = {},
): Promise<{ outcome: string; answer: string }> {
  const transport = new SmtpTransport({ ...smtp.settings, ...changes }, new ManualClock());
  try {
    return await transport.send(MAIL);
  } finally {
    transport.close();
  }
}

describe('a mail server', () => {
  it('is trusted by its certificate and its name alone', async () => {
    const smtp = await server({ tls: 'starttls' });
    expect(await outcomeOf(smtp)).toMatchObject({ outcome: 'sent', answer: expect.stringMatching(/^250 /) as string });
    expect(await outcomeOf(smtp, { authority: null })).toMatchObject({
      outcome: 'unreachable',
      answer: expect.stringContaining('self-signed certificate') as string,
    });
    const other = await server({ tls: 'starttls', name: 'mail.example' });
    const wrong = await outcomeOf(other);
    expect(wrong.outcome).toBe('unreachable');
    expect(wrong.answer).toContain('localhost');
    expect([smtp.received.length, other.received.length]).toEqual([1, 0]);
  });

  it('that offers no TLS gets neither the login nor a mail', async () => {
    const smtp = await server();
    const login = { user: 'gpurent', password: 'not to be sent' };
    expect(await outcomeOf(smtp, { tls: 'starttls', login })).toMatchObject({ outcome: 'unreachable' });
    expect(smtp.received).toEqual([]);
    expect(smtp.logins).toEqual([]);
  });

  it('can use TLS from the first byte', async () => {
    const smtp = await server({ tls: 'implicit' });
    expect(await outcomeOf(smtp)).toMatchObject({ outcome: 'sent' });
    expect(smtp.received).toMatchObject([{ isEncrypted: true }]);
    expect(await outcomeOf(smtp, { authority: null })).toMatchObject({ outcome: 'unreachable' });
  });

  it('that does not take the login is a fault of the settings, not of the mail; the password is not told', async () => {
    const smtp = await server({ tls: 'starttls' });
    const { outcome, answer } = await outcomeOf(smtp, { login: { user: 'gpurent', password: 'a wrong password' } });
    expect(outcome).toBe('unreachable');
    expect(answer).toBe('535 wrong password (in answer to AUTH PLAIN)');
    expect(answer).not.toContain('a wrong password');
  });

  it('that does not take the sender is one, too', async () => {
    const smtp = await server();
    smtp.toSender = () => ({ code: 553, text: 'not yours' });
    expect(await outcomeOf(smtp)).toEqual({ outcome: 'unreachable', answer: '553 not yours (in answer to MAIL FROM)' });
  });

  it('that has ended a connection meanwhile gets the next mail by another', async () => {
    const smtp = await server();
    const transport = new SmtpTransport(smtp.settings, new ManualClock());
    expect(await transport.send(MAIL)).toMatchObject({ outcome: 'sent' });
    await smtp.stop();
    await smtp.back();
    expect(await transport.send(MAIL)).toMatchObject({ outcome: 'sent' });
    expect(smtp.connections).toBe(2);
    transport.close();
  });

  it('that never answers is left after a minute', async () => {
    const clock = new ManualClock();
    const smtp = await server();
    smtp.toRecipient = () => 'hang';
    const transport = new SmtpTransport(smtp.settings, clock);
    let isOver = false;
    const sending = transport.send(MAIL).finally(() => (isOver = true));
    await smtp.asked();
    clock.advance(59_000);
    expect(isOver).toBe(false);
    clock.advance(1_000);
    // The text was not given yet.
    expect(await sending).toMatchObject({ outcome: 'unreachable' });
    transport.close();
  });

  it('is not kept longer than needed', async () => {
    const clock = new ManualClock();
    const smtp = await server();
    const transport = new SmtpTransport(smtp.settings, clock);
    await transport.send(MAIL);
    expect(smtp.atOnce).toBe(1);
    clock.advance(20_000);
    await smtp.has(0);
    transport.close();
  });
});

describe('the settings', () => {
  const password = join(folder, 'password');
  writeFileSync(password, 'secret\n');
  const least = {
    GPURENT_DATABASE: join(folder, 'gpurent.db'),
    GPURENT_PUBLIC_URL: 'https://gpus.example',
    GPURENT_SMTP_SERVER: 'mail.example:587',
    GPURENT_MAIL_FROM: 'GPU market <noreply@gpus.example>',
  };

  it('switch mail on; TLS is required', () => {
    expect(parseConfig({ GPURENT_DATABASE: least.GPURENT_DATABASE }).mail).toBeUndefined();
    const from = { name: 'GPU market', address: 'noreply@gpus.example' };
    expect(parseConfig(least).mail).toEqual({
      host: 'mail.example',
      port: 587,
      tls: 'starttls',
      login: null,
      authority: null,
      from,
    });
    const login = { GPURENT_SMTP_USER: 'me', GPURENT_SMTP_PASSWORD_FILE: password, GPURENT_MAIL_FROM: 'a@b.example' };
    expect(parseConfig({ ...least, ...login }).mail).toMatchObject({
      login: { user: 'me', password: 'secret' },
      from: { name: '', address: 'a@b.example' },
    });
    const tlsAt = (server: string, tls = '') =>
      parseConfig({ ...least, GPURENT_SMTP_SERVER: server, GPURENT_SMTP_TLS: tls }).mail?.tls;
    expect(tlsAt('mail.example:465')).toBe('implicit');
    expect(tlsAt('127.0.0.1:25')).toBe('off');
    expect(tlsAt('[::1]:25', 'starttls')).toBe('starttls');
    expect(tlsAt('localhost:25', 'off')).toBe('off');
  });

  it.each([
    ['GPURENT_PUBLIC_URL', '', /needs GPURENT_PUBLIC_URL/],
    ['GPURENT_MAIL_FROM', '', /needs GPURENT_MAIL_FROM/],
    ['GPURENT_MAIL_FROM', 'nobody', /give an address/],
    ['GPURENT_MAIL_FROM', 'a@b.example, c@d.example', /give an address/],
    ['GPURENT_MAIL_FROM', 'A <a@b.example', /give an address/],
    ['GPURENT_MAIL_FROM', 'A\r\nBcc: x <a@b.example>', /give an address/],
    ['GPURENT_SMTP_SERVER', 'mail.example', /GPURENT_SMTP_SERVER is "mail.example"; give HOST:PORT/],
    ['GPURENT_SMTP_SERVER', '', /GPURENT_MAIL_FROM is set, but not GPURENT_SMTP_SERVER/],
    ['GPURENT_SMTP_TLS', 'off', /only for a mail server on loopback/],
    ['GPURENT_SMTP_TLS', 'maybe', /give auto/],
    ['GPURENT_SMTP_USER', 'me', /both GPURENT_SMTP_USER and GPURENT_SMTP_PASSWORD_FILE/],
    ['GPURENT_SMTP_PASSWORD_FILE', password, /both GPURENT_SMTP_USER and GPURENT_SMTP_PASSWORD_FILE/],
    ['GPURENT_SMTP_CA_FILE', join(folder, 'none'), /GPURENT_SMTP_CA_FILE .*none/],
  ])('are refused with %s=%s', (name, value, saying) => {
    expect(() => parseConfig({ ...least, [name]: value })).toThrow(saying);
  });
});

describe('mail-test', () => {
  const run = (settings: Record<string, string>, to: string) =>
    new Promise<{ status: number; out: string; err: string }>((resolve) => {
      const env = { PATH: process.env['PATH'], GPURENT_DATABASE: join(folder, 'gpurent.db'), ...settings };
      execFile(process.execPath, [PROGRAM, 'mail-test', to], { env }, (error, out, err) =>
        resolve({ status: Number(error?.code ?? 0), out, err }),
      );
    });
  const settingsOf = ({ settings: { host, port } }: TestSmtp) => ({
    GPURENT_SMTP_SERVER: `${host}:${port}`,
    GPURENT_MAIL_FROM: 'noreply@gpus.example',
    GPURENT_PUBLIC_URL: 'https://gpus.example',
  });

  it('sends one mail and prints what the server said', async () => {
    const smtp = await server();
    const { status, out } = await run(settingsOf(smtp), 'me@example.com');
    expect(status).toBe(0);
    expect(out).toMatch(/^localhost:\d+ has accepted the mail: 250 /);
    expect(smtp.received).toMatchObject([{ to: 'me@example.com' }]);
    expect(smtp.received[0]?.mail.text).toContain('https://gpus.example can send mails');
  });

  it('says in one line what is wrong', async () => {
    const smtp = await server();
    smtp.toRecipient = () => ({ code: 550, text: 'who is that' });
    const refused = await run(settingsOf(smtp), 'me@example.com');
    expect(refused.status).toBe(1);
    expect(refused.err).toMatch(
      /^gpurent-control-plane: localhost:\d+ has not accepted the mail: 550 who is that \(in answer to RCPT TO\)\n$/,
    );
    expect((await run({}, 'me@example.com')).err).toContain('no mail server is set');
    expect((await run(settingsOf(smtp), 'me')).err).toContain('"me" is not an e-mail address');
  });
});

describe('without a mail server', () => {
  it('nothing is made of what happens, and what is answered says so', async () => {
    const test = await TestControlPlane.start();
    try {
      const renter = await test.renter(0);
      const { store } = test.core.platform;
      const data = { balance_micro: 1 };
      store.transact((tx) => recordEvent(tx, renter.organizationId, 'billing.balance_exhausted', 'x', data));
      for (let count = 0; count < 21; count++) {
        const email = `guest${count}@example.com`;
        const invited = await renter.api.post<{ mailed: boolean }>('/v1/orgs/current/invites', { email });
        expect(invited.mailed).toBe(false);
      }
      const credentials = { email: renter.email, password: 'a renter password' };
      const from = { 'X-Forwarded-For': '203.0.113.1' };
      expect((await test.api.request('POST', '/v1/auth/sign-in', credentials, from)).status).toBe(200);
      test.advance(1_000);
      expect(await renter.api.get('/v1/me/mail')).toMatchObject({ sends_mail: false });
      for (const table of ['mails', 'mail_positions'] as const)
        expect(store.transact((tx) => tx.all(query.selectFrom(table).selectAll()))).toEqual([]);
    } finally {
      await test.stop();
    }
  });
});
