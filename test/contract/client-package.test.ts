import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../../scripts/eventually.js';
import semver from 'semver';
import { VERSION } from '../../shared/version.js';
import { compile, STRICT, type CompilerOptions } from '../harness/compile.js';
import { TestControlPlane, type Renter } from '../harness/control-plane.js';

/** As strict as TypeScript gets; also the package's own declarations are checked. */
const STRICTEST: CompilerOptions = {
  ...STRICT,
  noEmit: false,
  skipLibCheck: false,
  exactOptionalPropertyTypes: true,
  noUncheckedIndexedAccess: true,
  noPropertyAccessFromIndexSignature: true,
  verbatimModuleSyntax: true,
  module: 'nodenext',
  moduleResolution: 'nodenext',
  lib: ['es2023'],
  types: ['node'],
};

interface Manifest {
  version: string;
  license: string;
  dependencies: Record<string, string>;
}

/** A project outside of this repository, which has the package and only what that depends on. */
let project: string;
let unpacked: string;
let manifest: Manifest;
let test: TestControlPlane;
let renter: Renter;
let key: string;

beforeAll(async () => {
  project = mkdtempSync(join(tmpdir(), 'gpurent-package-'));
  unpacked = join(project, 'node_modules/gpurent-client');
  const [tarball = ''] = execFileSync('scripts/pack-clients', [project], { encoding: 'utf8' }).split('\n');
  mkdirSync(unpacked, { recursive: true });
  execFileSync('tar', ['-xzf', join(project, tarball), '--strip-components=1', '-C', unpacked]);
  manifest = JSON.parse(readFileSync(join(unpacked, 'package.json'), 'utf8')) as Manifest;
  for (const name of [...Object.keys(manifest.dependencies), '@types/node', 'undici-types'])
    cpSync(join('node_modules', name), join(project, 'node_modules', name), { recursive: true });
  writeFileSync(join(project, 'package.json'), '{"type": "module"}');
  cpSync(join(unpacked, 'examples'), project, { recursive: true });

  test = await TestControlPlane.start();
  const agent = await test.host();
  await test.offer(agent);
  await test.template({ name: 'Debian 12' });
  renter = await test.renter();
  key = (await renter.api.post<{ secret: string }>('/v1/api-keys', { name: 'example' })).secret;
});
afterAll(async () => {
  await test.stop();
  rmSync(project, { recursive: true });
});

it('has the version and license of this release, and dependencies of the versions that are tested', () => {
  expect(manifest).toMatchObject({ license: 'Apache-2.0' });
  expect(semver.coerce(manifest.version)?.version).toBe(semver.coerce(VERSION)?.version);
  const tested = JSON.parse(readFileSync('package-lock.json', 'utf8')) as { packages: Record<string, Manifest> };
  for (const [name, version] of Object.entries(manifest.dependencies))
    expect(tested.packages[`node_modules/${name}`]?.version, name).toBe(version);
});

describe('its examples', () => {
  it('compile in a strict project outside', () => {
    const examples = readdirSync(project).filter((name) => name.endsWith('.ts'));
    expect(examples.length).toBeGreaterThan(2);
    const options = {
      ...STRICTEST,
      rootDir: project,
      outDir: project,
      typeRoots: [join(project, 'node_modules/@types')],
    };
    expect(
      compile(
        examples.map((name) => join(project, name)),
        options,
      ),
    ).toEqual([]);
  });

  function start(name: string, env: Record<string, string> = {}): { child: ChildProcess; output: () => string } {
    let text = '';
    const settings = { PATH: process.env['PATH'], GPURENT_URL: test.url, GPURENT_TOKEN: key, ...env };
    const child = spawn(process.execPath, [`${name}.js`], { cwd: project, env: settings });
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (part) => (text += String(part)));
    return { child, output: () => text };
  }

  async function run(name: string, env: Record<string, string> = {}): Promise<{ code: unknown; output: string }> {
    const { child, output } = start(name, env);
    const [code] = (await once(child, 'close')) as unknown[];
    return { code, output: output() };
  }

  it('rent.ts rents, waits and destroys; it says what a refusal means', async () => {
    const { code, output } = await run('rent');
    expect(output).toMatch(/ running\nssh -p \d+ root@\S+\ndestroying\n$/);
    expect(code).toBe(0);
    const poor = await test.renter(0);
    const other = await poor.api.post<{ secret: string }>('/v1/api-keys', { name: 'example' });
    const refused = await run('rent', { GPURENT_TOKEN: other.secret });
    expect(refused.output).toMatch(/^\$[\d.]+ are needed\nINSUFFICIENT_BALANCE: /);
    expect(refused.code).toBe(1);
  });

  it('charges.ts sums what was charged to the balance', async () => {
    const { output } = await run('charges');
    const { balance_micro } = await renter.api.get<{ balance_micro: number }>('/v1/orgs/current');
    expect(output).toContain('credit');
    expect(output.trimEnd().split('\n').at(-1)).toBe(`balance ${(balance_micro / 1e6).toFixed(6)}`);
  });

  it('follow.ts goes on where it has ended', async () => {
    const created = () => renter.api.post('/v1/api-keys', { name: 'another' });
    const first = start('follow');
    await eventually('the first events', () => first.output().includes('api_key.created'));
    await created();
    await eventually('the next one', () => first.output().match(/api_key.created/g)?.length === 2);
    first.child.kill('SIGINT');
    expect(await once(first.child, 'close')).toEqual([0, null]);
    await created();
    const second = start('follow');
    await eventually('what was missed', () => second.output() !== '');
    second.child.kill('SIGINT');
    await once(second.child, 'close');
    expect(second.output().match(/\n/g)).toHaveLength(1);
  });
});
