import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { EVENT_TYPES, STREAM_OF } from '../../control-plane/domain/event.js';
import { EVENT_MODELS } from '../../control-plane/http/events/event-models.js';
import { eventually } from '../../scripts/eventually.js';
import { TestControlPlane, type Renter } from '../harness/control-plane.js';
import { recordCredits } from '../harness/event-reader.js';
import { shellBlocks } from '../harness/guide-blocks.js';
import { fetchDocument, type JsonSchema } from '../harness/openapi-conformance.js';

const read = (file: string) => readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8');
const GUIDE = read('docs/events.md');

/** The types that domain/event.ts gives data to. */
const recorded = () => {
  const [, body = ''] = /export interface EventData \{\n([^]*?)\n\}/.exec(read('control-plane/domain/event.ts')) ?? [];
  return [...body.matchAll(/^ {2}'([a-z_.]+)':/gm)].map(([, type = '']) => type);
};

describe('every type of event', () => {
  it('has a stream and a model, and there is no other', () => {
    expect(recorded().length).toBeGreaterThan(20);
    expect([...EVENT_TYPES].sort()).toEqual(recorded().sort());
    expect(Object.keys(EVENT_MODELS).sort()).toEqual(recorded().sort());
  });

  it('is in the guide, with its meaning and its fields, in the table of its readers', () => {
    const tables = GUIDE.split('| type | says | `data` |').slice(1);
    const [organization = [], operators = []] = tables.map((table) =>
      table
        .split('\n\n')[0]
        ?.split('\n')
        .filter((line) => line.startsWith('| `'))
        .map((line) => line.split('|').map((cell) => cell.trim())),
    );
    const rowsOf = (stream: string) =>
      EVENT_TYPES.filter((type) => STREAM_OF[type] === stream).map((type) => {
        const { meaning, data } = EVENT_MODELS[type];
        const fields = Object.keys(data.properties).map((name) => `\`${name}\``);
        return ['', `\`${type}\``, meaning, fields.join(', '), ''];
      });
    expect(organization).toEqual(rowsOf('organization'));
    expect(operators).toEqual(rowsOf('operators'));
  });
});

describe('on a control plane', () => {
  let test: TestControlPlane;
  let renter: Renter;
  let env: NodeJS.ProcessEnv;
  const folder = mkdtempSync(join(tmpdir(), 'gpurent-events-'));
  const running: ReturnType<typeof spawn>[] = [];
  beforeAll(async () => {
    test = await TestControlPlane.start();
    renter = await test.renter(0);
    const { secret } = await renter.api.post<{ secret: string }>('/v1/api-keys', { name: 'events' });
    env = { ...process.env, API: test.url, KEY: secret };
  });
  afterAll(async () => {
    for (const child of running) child.kill();
    rmSync(folder, { recursive: true });
    await test.stop();
  });

  /** Starts a program and collects what it prints. */
  function run(command: string, args: string[]): { text: string; code: number | null | undefined } {
    const child = spawn(command, args, { env, stdio: ['ignore', 'pipe', 'pipe'] });
    running.push(child);
    const said: { text: string; code: number | null | undefined } = { text: '', code: undefined };
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (part: Buffer) => (said.text += part.toString()));
    child.on('close', (code) => (said.code = code));
    return said;
  }

  it('the document has a model for each type, and each reader’s list names theirs', async () => {
    const { components, paths } = await fetchDocument(test.url);
    const typesAt = (path: string) => {
      const schema: JsonSchema = paths[path]?.['get']?.responses['200']?.content?.['application/json']?.schema ?? {};
      const { items } = schema['properties'] as { items: { items: { oneOf: { $ref: string }[] } } };
      return items.items.oneOf.map(({ $ref }) => $ref.replace('#/components/schemas/event.', ''));
    };
    const [own, operators] = [typesAt('/v1/events'), typesAt('/v1/operator/events')];
    expect([...own, ...operators].sort()).toEqual(recorded().sort());
    for (const type of recorded())
      expect(components.schemas[`event.${type}`]).toMatchObject({
        properties: { type: { enum: [type] }, data: { type: 'object' } },
      });
  });

  it('the program of the guide prints each event once, over a restart of the control plane', async () => {
    const [, program = ''] = /^```js\n([^]*?)^```/m.exec(GUIDE) ?? [];
    const file = join(folder, 'events.mjs');
    writeFileSync(file, program);
    const { last_id } = await renter.api.get<{ last_id: string }>('/v1/events?limit=1');
    recordCredits(test, renter.organizationId, 2);
    const said = run(process.execPath, [file, last_id]);
    const amounts = () => [...said.text.matchAll(/amount_micro: (\d+)/g)].map(([, amount]) => Number(amount));
    await eventually('the first events', () => amounts().length >= 2);
    await test.restart();
    recordCredits(test, renter.organizationId, 3, 3);
    await eventually('the other events', () => amounts().length >= 5);
    expect(amounts()).toEqual([1, 2, 3, 4, 5]);
    const refused = run(process.execPath, [file, '9.9']);
    await eventually('the refusal', () => refused.code !== undefined);
    expect(refused.text).toContain('EVENTS_EXPIRED');
    expect(refused.code).toBe(1);
  });

  it('the commands of the guide are answered', async () => {
    const { last_id } = await renter.api.get<{ last_id: string }>('/v1/events?limit=1');
    const commands = shellBlocks(GUIDE)
      .join('')
      .replaceAll('1767225600000.4711', last_id)
      .replaceAll('--max-time 60', '--max-time 1');
    const said = run('bash', ['-c', commands]);
    await eventually('the commands', () => said.code !== undefined);
    expect(said.text.match(/"last_id":/g)).toHaveLength(3);
    expect(said.text).toContain(`retry: 3000\nid: ${last_id}\n`);
    expect(said.text).not.toContain('"code"');
  });
});
