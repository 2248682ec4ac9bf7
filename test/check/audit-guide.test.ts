import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { auditLine, LINES_LOST, MOST_LINE_BYTES } from '../../control-plane/domain/audit-line.js';
import { pauseMs } from '../../control-plane/domain/webhook.js';
import { auditMessage } from '../../control-plane/services/audit-out/message.js';
import { LINES_A_RUN } from '../../control-plane/services/audit-out/sources.js';
import { MOST_QUEUED_ACTS } from '../../control-plane/services/system/act-queue.js';
import { eventually } from '../../scripts/eventually.js';
import { freePort } from '../harness/webhook-receiver.js';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const GUIDE = readFileSync(`${ROOT}docs/audit-out.md`, 'utf8');
const SECRET = `whsec_${Buffer.alloc(32, 'guide').toString('base64')}`;

const blockIn = (language: string) => new RegExp(`^\`\`\`${language}\\n([^]*?)^\`\`\``, 'm').exec(GUIDE)?.[1] ?? '';

it('the example is a line as the program writes it', () => {
  const line = blockIn('json').trim();
  expect(auditLine(JSON.parse(line) as never)).toBe(line);
});

it('the selections of audit lines take each line, and no line of the log', () => {
  const [, journal = ''] = /--grep '([^']+)'/.exec(blockIn('bash')) ?? [];
  const [, loki = ''] = /!~ "(.+)"`/.exec(blockIn('alloy')) ?? [];
  for (const pattern of [journal, loki.replaceAll('\\"', '"')]) {
    const selection = new RegExp(pattern);
    for (const source of ['audit', 'event', 'organization'] as const) {
      const facts = { source, id: 'x', at: 'x', actor: { kind: 'system' }, action: 'x', subject: 'x', details: {} };
      expect(auditLine(facts)).toMatch(selection);
    }
    const logged = JSON.stringify({ level: 30, msg: '{"source":"audit","id":"' });
    for (const other of [logged, '{"http":"127.0.0.1:8080"}']) expect(other).not.toMatch(selection);
  }
});

it('the receiver takes what is signed, line by line, and nothing else', async () => {
  const port = await freePort();
  const env = { PATH: process.env['PATH'], PORT: String(port), WEBHOOK_SECRET: SECRET };
  const child = spawn(process.execPath, ['--input-type=module', '-e', blockIn('js')], { cwd: ROOT, env });
  try {
    let printed = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (part) => (printed += String(part)));
    const send = async ({ headers, body }: { headers: Record<string, string>; body: string }) =>
      (await fetch(`http://127.0.0.1:${port}/`, { method: 'POST', headers, body })).status;
    const message = auditMessage(['{"source":"audit","id":"ü"}', '{"source":"event","id":"2"}'], SECRET, Date.now());
    await eventually('the receiver', () => send({ headers: {}, body: '' }).catch(() => undefined));
    expect(await send(message), printed).toBe(204);
    await eventually('what it prints', () => printed === '{"source":"audit","id":"ü"}\n{"source":"event","id":"2"}\n');
    expect(await send({ ...message, body: `${message.body} ` })).toBe(400);
    expect(await send(auditMessage(['{}'], SECRET, Date.now() - 301_000))).toBe(400);
    expect(await send(auditMessage(['{}'], `whsec_${'A'.repeat(40)}`, Date.now()))).toBe(400);
  } finally {
    child.kill();
  }
});

it('the guide says the limits and pauses that the program has', () => {
  expect(GUIDE).toContain(`at most ${MOST_LINE_BYTES.toLocaleString('en')} bytes`);
  expect(GUIDE).toContain(`at most ${LINES_A_RUN} lines`);
  expect(GUIDE).toContain(`more than ${MOST_QUEUED_ACTS.toLocaleString('en')}`);
  expect(GUIDE).toContain(`\`${LINES_LOST}\``);
  expect([1, 2, 3, 4, 9].map((failures) => pauseMs(failures, 0) / 1_000)).toEqual([5, 30, 120, 300, 300]);
  expect(GUIDE).toContain('after 5 seconds, 30 seconds, 2 minutes, and then every 5 minutes');
});
