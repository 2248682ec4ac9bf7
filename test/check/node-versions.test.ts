import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const root = fileURLToPath(new URL('../../', import.meta.url));
let folder: string;

/** Makes `node` say of itself that it is another version. */
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'gpurent-node-'));
  const preload = join(folder, 'version.cjs');
  writeFileSync(
    preload,
    `const { NODE_VERSION: version } = process.env;
    Object.defineProperty(process, 'version', { value: version });
    Object.defineProperty(process, 'versions', { value: { ...process.versions, node: version.slice(1) } });`,
  );
  mkdirSync(join(folder, 'bin'));
  writeFileSync(join(folder, 'bin/node'), `#!/bin/sh\nexec ${process.execPath} --require ${preload} "$@"\n`);
  chmodSync(join(folder, 'bin/node'), 0o755);
});
afterAll(() => rmSync(folder, { recursive: true }));

function runAs(version: string, command: string): { status: number | null; stderr: string } {
  const env = { ...process.env, NODE_VERSION: version, PATH: `${folder}/bin:${process.env['PATH'] ?? ''}` };
  const { status, stderr } = spawnSync('bash', ['-c', command], { cwd: root, env, encoding: 'utf8' });
  return { status, stderr };
}

describe('Node in a version that nothing was tried with', () => {
  it.each([
    ['control plane', 'bundle/control-plane.js'],
    ['agent', 'bundle/agent.js'],
  ])('is refused by the %s with one line', (_, program) => {
    const { status, stderr } = runAs('v23.11.0', `node dist/${program} --version`);
    expect(status).toBe(1);
    expect(stderr).toMatch(/^gpurent: this is Node 23\.11\.0; install one of 20 \(from 20\.19\), [^\n]*\n$/);
  });

  it('is refused by the scripts of a checkout', () => {
    const check = 'source scripts/lib/setup.sh; require_node';
    expect(runAs('v23.11.0', check)).toEqual({
      status: 1,
      stderr: 'one of these versions of Node is needed: 20.19.0, 22.12.0, 24.0.0, 26.4.0; this is v23.11.0\n',
    });
    expect(runAs('v22.12.0', check)).toEqual({ status: 0, stderr: '' });
  });
});

describe('The SQLite driver', () => {
  it('is looked for in a form that this Node can load, whichever Node has installed the packages', () => {
    const check = 'source scripts/lib/setup.sh; driver_works';
    expect(runAs(process.version, check).status).toBe(0);
    // Packages without it, and with one that was compiled for no Node at all.
    const packages = join(folder, 'checkout/node_modules');
    mkdirSync(join(packages, 'better-sqlite3/build/Release'), { recursive: true });
    for (const name of ['bindings', 'file-uri-to-path'])
      execFileSync('cp', ['-rL', join(root, 'node_modules', name), packages]);
    execFileSync('cp', [
      '-rL',
      ...['lib', 'package.json'].map((name) => join(root, 'node_modules/better-sqlite3', name)),
      join(packages, 'better-sqlite3'),
    ]);
    rmSync(join(packages, 'better-sqlite3/lib/binding'), { recursive: true, force: true });
    const elsewhere = `source scripts/lib/setup.sh; cd ${join(folder, 'checkout')}; driver_works`;
    expect(runAs(process.version, elsewhere).status).toBe(1);
    writeFileSync(join(packages, 'better-sqlite3/build/Release/better_sqlite3.node'), 'none');
    expect(runAs(process.version, elsewhere).status).toBe(1);
  });
});
