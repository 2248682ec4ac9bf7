import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { fetchDocument } from '../harness/openapi-conformance.js';
import { TestControlPlane } from '../harness/control-plane.js';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const GUIDES = [
  'README.md',
  ...[
    'operator',
    'day-two',
    'host-owner',
    'alerts',
    'renter',
    'events',
    'webhooks',
    'audit-out',
    'mcp',
    'api-rules',
    'api-stability',
    'orchestrators',
    'github-runners',
  ].map((name) => `docs/${name}.md`),
];
const METHODS = 'GET|POST|PUT|PATCH|DELETE';

const read = (file: string) => readFileSync(join(ROOT, file), 'utf8');
const blocksOf = (text: string) => [...text.matchAll(/^```sh\n([^]*?)^```/gm)].map(([, block = '']) => block);

/** A request that a guide tells its reader to make. */
interface Told {
  method: string;
  path: string;
  query: string[];
  body: Record<string, unknown> | undefined;
}

/** Placeholders such as ID and {id} stand for anything. */
function told(method: string, address: string, body?: string): Told {
  const [path = '', query = ''] = address.replace(/[.,]$/, '').split('?');
  const names = [...new URLSearchParams(query).keys()];
  return { method, path, query: names, body: body === undefined ? undefined : (JSON.parse(body) as Told['body']) };
}

function requestsIn(text: string): Told[] {
  const plain = text.replace(/\\\n\s*/g, ' ');
  const named = [
    ...plain.matchAll(new RegExp(`\\b(${METHODS}) '?(/v1/[^\\s'"\`)]+)'?(?: '?(\\{".*?\\}))?(?=['\`\\s.,;)])`, 'g')),
  ];
  const curls = [...plain.matchAll(/curl [^\n]*?(?:localhost:8080|\$API)(\/v1\/[^\s"'`]+)([^\n]*)/g)];
  const ofRenters = [...plain.matchAll(/^api (\/v1\/\S+)([^\n]*)/gm)];
  return [
    ...named.map(([, method = '', path = '', body]) => told(method, path, body)),
    ...[...curls, ...ofRenters].map(([line, path = '', rest = '']) => {
      const [, method] = new RegExp(`-X (${METHODS})`).exec(line) ?? [];
      const [, body] = / -d '(\{.*?\})'/.exec(rest) ?? [];
      return told(method ?? (rest.includes(' -d ') ? 'POST' : 'GET'), path, body);
    }),
  ];
}

interface Operation {
  parameters?: { name: string; in: string }[];
  requestBody?: { content: Record<string, { schema: { properties?: Record<string, unknown>; required?: string[] } }> };
}

let paths: Record<string, Record<string, Operation>>;
let test: TestControlPlane;

beforeAll(async () => {
  const stripe = { secretKey: 'unused', webhookSecret: 'unused', returnUrl: 'http://localhost', apiUrl: undefined };
  test = await TestControlPlane.start({ stripe });
  ({ paths } = (await fetchDocument(test.url)) as unknown as { paths: typeof paths });
});
afterAll(() => test.stop());

function operationOf({ method, path }: Told): Operation | undefined {
  const segments = path.split('/');
  const isIt = (template: string) => {
    const parts = template.split('/');
    return (
      parts.length === segments.length &&
      parts.every((part, index) => part === segments[index] || (part.startsWith('{') && segments[index] !== ''))
    );
  };
  // What is written out comes before a placeholder: /orgs/current before /orgs/{id}.
  const [template] = Object.keys(paths)
    .filter((each) => isIt(each) && paths[each]?.[method.toLowerCase()])
    .sort((one, other) => one.split('{').length - other.split('{').length);
  return template === undefined ? undefined : paths[template]?.[method.toLowerCase()];
}

/** What is wrong with a request; undefined: nothing. */
function faultOf(request: Told): string | undefined {
  const operation = operationOf(request);
  if (!operation) return 'no such route';
  const known = (operation.parameters ?? []).filter((each) => each.in === 'query').map(({ name }) => name);
  const strange = request.query.filter((name) => !known.includes(name));
  if (strange.length > 0) return `no parameter ${strange.join(', ')}`;
  if (!request.body) return undefined;
  const { properties = {}, required = [] } = operation.requestBody?.content['application/json']?.schema ?? {};
  const fields = Object.keys(request.body);
  const unknown = fields.filter((name) => !(name in properties));
  const missing = required.filter((name) => !fields.includes(name));
  if (unknown.length + missing.length > 0) return `unknown: ${unknown.join(', ')}; missing: ${missing.join(', ')}`;
  return undefined;
}

/** The commands of a program with their options, by its source. */
function commandsOf(file: string): Map<string, Set<string>> {
  const [, ...parts] = read(file).split(/\.command\('/);
  return new Map(
    parts.map((part) => {
      const options = [...part.matchAll(/(?:ption\(|= \[)'(--[a-z-]+)/g)].map(([, option = '']) => option);
      return [
        /^[a-z-]+/.exec(part)?.[0] ?? '',
        new Set([...options, ...(part.includes('gpuOption') ? ['--gpus'] : [])]),
      ];
    }),
  );
}

describe.each(GUIDES)('%s', (file) => {
  const text = read(file);

  it('names routes, parameters and fields that there are', () => {
    const faults = requestsIn(text).flatMap((request) => {
      const fault = faultOf(request);
      return fault === undefined ? [] : [`${request.method} ${request.path}: ${fault}`];
    });
    expect(faults).toEqual([]);
  });

  it('names commands and options that there are', () => {
    const programs = {
      'gpurent-control-plane': commandsOf('control-plane/main.ts'),
      'gpurent-agent': commandsOf('agent/main.ts'),
    };
    const enroll = programs['gpurent-agent'].get('enroll') ?? new Set();
    const uninstall = ['--uninstall', '--purge'];
    const installers = {
      'scripts/install-agent': new Set([...enroll, ...uninstall]),
      'scripts/install-control-plane': new Set(['--operator', ...uninstall]),
    };
    const code = [...blocksOf(text), ...[...text.matchAll(/`([^`\n]+)`/g)].map(([, inline = '']) => inline)].join('\n');
    const optionsIn = (rest: string) => [...rest.matchAll(/(?<=\s)--[a-z-]+/g)].map(([option]) => option);
    const faults: string[] = [];
    for (const [line, program = '', command = '', rest = ''] of code.matchAll(
      /(?<![\w/-])(gpurent-agent|gpurent-control-plane) ([a-z][a-z-]*)([^\n;&|]*)/g,
    )) {
      const options = programs[program as keyof typeof programs].get(command);
      if (!options) faults.push(`no such command: ${line}`);
      else for (const option of optionsIn(rest)) if (!options.has(option)) faults.push(`no ${option}: ${line}`);
    }
    for (const [line, script = '', rest = ''] of code.matchAll(/(scripts\/install-[a-z-]+)([^\n;&|]*)/g)) {
      const options = new Map(Object.entries(installers)).get(script);
      for (const option of optionsIn(rest)) if (!options?.has(option)) faults.push(`no ${option}: ${line}`);
    }
    for (const [, name = ''] of code.matchAll(/npm run (?:--silent )?([a-z:-]+)/g))
      if (!(name in (JSON.parse(read('package.json')) as { scripts: object }).scripts)) faults.push(name);
    for (const [path] of code.matchAll(/(?<![\w/-])(?:scripts|packaging)\/[a-zA-Z0-9.@-]*[a-zA-Z0-9]/g))
      if (!existsSync(join(ROOT, path))) faults.push(`no such file: ${path}`);
    for (const [, path = ''] of code.matchAll(
      /\/opt\/gpurent\/(?:agent|control-plane)\/((?:scripts|packaging)\/\S*\w)/g,
    ))
      if (!existsSync(join(ROOT, path))) faults.push(`no such file: ${path}`);
    expect(faults).toEqual([]);
  });

  it('has blocks that a shell reads', () => {
    for (const block of blocksOf(text)) execFileSync('bash', ['-n'], { input: block });
  });

  it('links to files that there are', () => {
    const links = [...text.matchAll(/\]\((?!https?:)([^)#]+)/g)].map(([, target = '']) => target);
    expect(links.filter((target) => !existsSync(join(ROOT, dirname(file), target)))).toEqual([]);
  });
});

it('npm installs files and packages that are meant, never a repository of a stranger', () => {
  const documents = execFileSync('git', ['ls-files', '*.md'], { cwd: ROOT, encoding: 'utf8' }).trim().split('\n');
  const { dependencies, devDependencies } = JSON.parse(read('package.json')) as Record<string, object>;
  const packages = { ...dependencies, ...devDependencies };
  const told = documents.flatMap((file) =>
    [...read(file).matchAll(/\b(npm (?:install|i|add|exec)|npx)((?: [^\s`#;&|]+)+)/g)].flatMap(
      ([line, tool, rest = '']) => {
        const names = rest
          .trim()
          .split(' ')
          .filter((word) => !word.startsWith('-'));
        return (tool === 'npx' ? names.slice(0, 1) : names).map((name) => ({ file, line, name }));
      },
    ),
  );
  const isFile = (name: string) => /^\.\/[\w./-]+\.tgz$/.test(name);
  expect(told.filter(({ name }) => isFile(name)).length).toBeGreaterThanOrEqual(4);
  expect(told.filter(({ name }) => !isFile(name) && !(name in packages))).toEqual([]);
});

it('settings that the day-two guide names are read', () => {
  const settings = [...read('docs/day-two.md').matchAll(/GPURENT_[A-Z_]*[A-Z]/g)].map(([name]) => name);
  const readers = [
    'control-plane/config.ts',
    'control-plane/payments/stripe.ts',
    'agent/config.ts',
    'packaging/gpurent-copies',
  ];
  const known = readers.map(read).join('');
  expect(settings.length).toBeGreaterThan(5);
  expect(settings.filter((name) => !known.includes(name))).toEqual([]);
});

it('renters are told the smallest disk, and how to log in', () => {
  const deploy = paths['/v1/instances']?.['post']?.requestBody?.content['application/json']?.schema.properties;
  const { minimum } = (deploy?.['disk_gb'] ?? {}) as { minimum?: number };
  const guide = read('docs/renter.md');
  expect(guide).toContain(`at least ${minimum} GB`);
  expect(guide).toContain('\nssh -p SSH_PORT SSH_USER@SSH_HOST\n');
});

it('what it looks for is found', () => {
  expect(requestsIn('api POST /v1/x/ID \'{"a": 1}\'')).toEqual([told('POST', '/v1/x/ID', '{"a": 1}')]);
  expect(requestsIn("`api GET '/v1/x?a=1'` and `GET /v1/y`.")).toEqual([
    told('GET', '/v1/x?a=1'),
    told('GET', '/v1/y'),
  ]);
  expect(requestsIn('curl -s localhost:8080/v1/x -H a \\\n  -d \'{"a": 1}\'')).toEqual([
    told('POST', '/v1/x', '{"a": 1}'),
  ]);
  expect(requestsIn('curl -s -X POST localhost:8080/v1/x')).toEqual([told('POST', '/v1/x')]);
  expect(faultOf(told('GET', '/v1/nothing'))).toBe('no such route');
  expect(faultOf(told('PATCH', '/v1/offers'))).toBe('no such route');
  expect(faultOf(told('GET', '/v1/operator/revenue?month=1'))).toBe('no parameter month');
  expect(faultOf(told('PATCH', '/v1/operator/offers/ID', '{"price": 1}'))).toMatch(/unknown: price/);
});
