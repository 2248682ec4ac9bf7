import BetterSqlite3 from 'better-sqlite3';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { MINUTE_MS } from '../../shared/time.js';
import { ApiClient } from '../harness/api-client.js';
import { TestControlPlane } from '../harness/control-plane.js';
import { mailsAreSettled, mailsOf } from '../harness/mails.js';
import { TestSmtp } from '../harness/smtp.js';

const PROGRAM = fileURLToPath(new URL('../../dist/bundle/control-plane.js', import.meta.url));

it('a control plane that is killed while it waits for the answer to a mail sends it once more, as the same mail', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'gpurent-mail-kill-'));
  const database = join(folder, 'gpurent.db');
  const smtp = await TestSmtp.start();
  const { host, port } = smtp.settings;
  const env = {
    PATH: process.env['PATH'],
    GPURENT_DATABASE: database,
    GPURENT_LOG_LEVEL: 'silent',
    GPURENT_HTTP_ADDRESS: '127.0.0.1:0',
    GPURENT_GRPC_ADDRESS: '127.0.0.1:0',
    GPURENT_SMTP_SERVER: `${host}:${port}`,
    GPURENT_MAIL_FROM: 'noreply@gpus.example',
    GPURENT_PUBLIC_URL: 'https://gpus.example',
  };
  const operator = ['create-operator', '--email', 'operator@example.com'];
  spawnSync(process.execPath, [PROGRAM, ...operator], { env, input: 'operator password' });
  const program = spawn(process.execPath, [PROGRAM, 'serve'], { env, stdio: ['ignore', 'pipe', 'inherit'] });
  let next: TestControlPlane | undefined;
  try {
    const [line] = (await once(createInterface(program.stdout), 'line')) as [string];
    const api = new ApiClient(`http://${(JSON.parse(line) as { http: string }).http}`);
    const account = { email: 'renter@example.com', password: 'a fine password', name: 'Renter' };
    await api.post('/v1/auth/sign-up', account);
    const [confirmation] = await smtp.gets(1);
    const [link] = /new_[0-9a-f]+/.exec(confirmation?.mail.text ?? '') ?? [];
    const confirmed = { token: link, password: account.password };
    const renter = api.as((await api.post<{ token: string }>('/v1/auth/sign-up/confirm', confirmed)).token);
    smtp.toMail = () => 'hang';
    await renter.post('/v1/orgs/current/invites', { email: 'guest@example.com' });
    // The server has the mail, and the control plane does not know whether it was accepted.
    const [, first] = await smtp.gets(2);
    program.kill('SIGKILL');
    await once(program, 'exit');

    smtp.toMail = () => 'accept';
    const left = new BetterSqlite3(database);
    left.pragma('wal_checkpoint(TRUNCATE)');
    left.close();
    const secretKey = Buffer.from(readFileSync(`${database}.key`, 'utf8').trim(), 'hex');
    next = await TestControlPlane.start({ mail: smtp.settings, left: { database, secretKey, at: Date.now() } });
    expect(mailsOf(next).slice(1)).toMatchObject([{ kind: 'invite', state: 'queued', attempts: 1, unanswered: 1 }]);
    next.advance(11 * MINUTE_MS);
    await mailsAreSettled(next);
    const again = smtp.received.filter(({ to }) => to === 'guest@example.com').at(1);
    expect(again?.mail.messageId).toBe(first?.mail.messageId);
    expect(again?.mail.text).toBe(first?.mail.text);
    next.advance(60 * MINUTE_MS);
    expect(mailsOf(next).slice(1)).toMatchObject([{ state: 'sent', attempts: 2 }]);
    expect(smtp.received.filter(({ to }) => to === 'guest@example.com')).toHaveLength(2);
  } finally {
    program.kill('SIGKILL');
    await next?.stop();
    await smtp.stop();
    rmSync(folder, { recursive: true });
  }
});
