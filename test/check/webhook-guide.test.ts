import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, expect, it } from 'vitest';
import { Webhook } from 'standardwebhooks';
import { DELIVERY_ERRORS } from '../../control-plane/domain/webhook.js';
import { newSecret } from '../../control-plane/services/webhooks/secrets.js';
import { randomIds } from '../../shared/ids.js';
import { eventually } from '../../scripts/eventually.js';
import { freePort } from '../harness/webhook-receiver.js';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const GUIDE = readFileSync(join(ROOT, 'docs/webhooks.md'), 'utf8');
const folder = mkdtempSync(join(tmpdir(), 'gpurent-guide-'));
const children: ChildProcess[] = [];

afterEach(() => {
  for (const child of children.splice(0)) child.kill();
});
afterAll(() => rmSync(folder, { recursive: true }));

/** The only block of the guide in a language. */
function blockIn(language: string): string {
  const [block, ...others] = [...GUIDE.matchAll(new RegExp(`^\`\`\`${language}\\n([^]*?)^\`\`\``, 'gm'))];
  expect(others).toEqual([]);
  return block?.[1] ?? '';
}

const BODY = '{"type":"instance.status_changed","subject":"instances/ü"}';
const secret = newSecret(randomIds);

/** The headers of a message that was signed so many seconds ago, by two secrets. */
function signed(secondsAgo = 0): Record<string, string> {
  const at = new Date(Date.now() - secondsAgo * 1_000);
  const by = (one: string) => new Webhook(one).sign('an-id', at, BODY);
  return {
    'webhook-id': 'an-id',
    'webhook-timestamp': String(Math.floor(at.getTime() / 1_000)),
    'webhook-signature': `${by(newSecret(randomIds))} ${by(secret)}`,
  };
}

const has = (program: string) => spawnSync('sh', ['-c', `command -v ${program}`]).status === 0;

it.each([
  ['js', 'node', ['--input-type=module', '-e']],
  ['python', 'python3', ['-c']],
])('the server in %s accepts what was signed, and nothing else', async (language, program, options) => {
  if (!has(program)) return;
  const port = await freePort();
  const env = { PATH: process.env['PATH'], PORT: String(port), WEBHOOK_SECRET: secret };
  const child = spawn(program, [...options, blockIn(language)], { cwd: ROOT, env });
  children.push(child);
  let printed = '';
  child.stdout.on('data', (data) => (printed += String(data)));
  child.stderr.on('data', (data) => (printed += String(data)));
  const send = async (headers: Record<string, string>, body = BODY) =>
    (await fetch(`http://127.0.0.1:${port}/`, { method: 'POST', headers, body })).status;
  await eventually('the server', () => send({}).catch(() => undefined));
  expect(await send(signed()), printed).toBe(204);
  await eventually('what it prints', () => printed.includes('instance.status_changed instances/ü'));
  expect(await send(signed(), `${BODY} `)).toBe(400);
  expect(await send({ ...signed(), 'webhook-id': 'another-id' })).toBe(400);
  expect(await send({ ...signed(), 'webhook-signature': 'v1,é' })).toBe(400);
  expect(await send(signed(301))).toBe(400);
  expect(await send({})).toBe(400);
});

it('the shell tells what was signed from the rest', () => {
  if (!has('openssl')) return;
  const file = join(folder, 'body');
  const judged = (headers: Record<string, string>, body = BODY) => {
    writeFileSync(file, body);
    const [id, timestamp, signature] = ['webhook-id', 'webhook-timestamp', 'webhook-signature'].map(
      (name) => headers[name],
    );
    const variables = { WEBHOOK_ID: id, WEBHOOK_TIMESTAMP: timestamp, WEBHOOK_SIGNATURE: signature };
    const env = { PATH: process.env['PATH'], WEBHOOK_SECRET: secret, BODY: file, ...variables };
    return spawnSync('bash', ['-euc', blockIn('bash')], { env, encoding: 'utf8' }).stdout.trim();
  };
  expect(judged(signed())).toBe('genuine');
  expect(judged(signed(), `${BODY} `)).toBe('forged');
  expect(judged(signed(301))).toBe('too old');
});

it('every error of a delivery is explained', () => {
  const section = GUIDE.slice(GUIDE.indexOf('| `last_error`'));
  const explained = [...section.slice(0, section.indexOf('\n\n')).matchAll(/^\| `(\w+)` \| (?!what)/gm)];
  expect(explained.map(([, name]) => name)).toEqual([...DELIVERY_ERRORS]);
});
