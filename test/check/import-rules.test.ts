import { fileURLToPath } from 'node:url';
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';

const root = fileURLToPath(new URL('../../', import.meta.url));
let copy: string;

/** A small tree with the project's own configuration, to break a rule in. */
beforeEach(() => {
  copy = mkdtempSync(join(tmpdir(), 'gpurent-check-'));
  for (const file of [
    'import-rules.config.cjs',
    'tsconfig.base.json',
    '.oxlintrc.json',
    '.oxfmtrc.json',
    'package.json',
  ]) {
    cpSync(join(root, file), join(copy, file));
  }
  symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'));
  for (const part of ['shared', 'client', 'console', 'control-plane', 'agent', 'test', 'scripts']) {
    put(`${part}/tsconfig.json`, '{ "extends": "../tsconfig.base.json", "include": ["**/*.ts"] }');
    put(`${part}/present.ts`, 'export const present = true;\n');
  }
});
afterEach(() => rmSync(copy, { recursive: true }));

function put(file: string, text: string): void {
  mkdirSync(dirname(join(copy, file)), { recursive: true });
  writeFileSync(join(copy, file), text);
}

function check(name: string): { code: number | null; output: string } {
  const { status, stdout, stderr } = spawnSync('npm', ['run', '--silent', `check:${name}`], {
    cwd: copy,
    encoding: 'utf8',
  });
  return { code: status, output: stdout + stderr };
}

const importing = (path: string) => `import { it } from '${path}';\nexport const used = it;\n`;

it('a tree that keeps the rules passes', () => {
  put('control-plane/domain/it.ts', 'export const it = 1;\n');
  put('control-plane/services/use.ts', importing('../domain/it.js'));
  expect(check('imports')).toMatchObject({ code: 0 });
});

it('imports of what a part may not see, a domain that does I/O, a circle, and two folders that import each other fail the check', () => {
  const forbidden = [
    ['control-plane/domain', 'control-plane/store'],
    ['control-plane/http', 'control-plane/store'],
    ['control-plane/http', 'control-plane/grpc'],
    ['control-plane/http', 'client/mcp'],
    ['control-plane/services/instances', 'control-plane/services/billing'],
    ['control-plane/services/organizations', 'control-plane/services/identity'],
    ['control-plane/services/identity', 'control-plane/services/billing'],
    ['agent/commands', 'agent/runtime/docker'],
    ['agent', 'control-plane'],
    ['shared', 'agent'],
    ['console', 'control-plane'],
    ['console/src/data', 'console/src/parts'],
  ] as const;
  for (const [index, [from, to]] of forbidden.entries()) {
    put(`${to}/it${index}.ts`, 'export const it = 1;\n');
    put(`${from}/use${index}.ts`, importing(`${relative(from, to)}/it${index}.js`));
  }
  const rooms = [
    ['control-plane/domain/instances', 'control-plane/domain/money'],
    ['control-plane/services/identity/sessions', 'control-plane/services/identity/factors'],
    ['console/src/parts/controls', 'console/src/parts/layout'],
  ] as const;
  for (const [room, above] of rooms) {
    put(`${above}/it.ts`, 'export const it = 1;\n');
    put(`${room}/use.ts`, importing(`${relative(room, above)}/it.js`));
  }
  put('control-plane/grpc/sign-in.ts', importing('../services/identity/it.js'));
  put('control-plane/services/identity/it.ts', 'export const it = 1;\n');
  put('console/src/pages/one/it.ts', 'export const it = 1;\n');
  put('console/src/pages/two/use.ts', importing('../one/it.js'));
  put('agent/domain/io.ts', "import { readFileSync } from 'node:fs';\nexport const used = readFileSync;\n");
  put('shared/a.ts', "import { b } from './b.js';\nexport const a = () => b;\n");
  put('shared/b.ts', "import { a } from './a.js';\nexport const b = () => a;\n");
  put('agent/one/a.ts', "import { b } from '../two/b.js';\nexport const a = b;\n");
  put('agent/one/c.ts', 'export const c = 1;\n');
  put('agent/two/b.ts', 'export const b = 1;\n');
  put('agent/two/d.ts', "import { c } from '../one/c.js';\nexport const d = c;\n");
  const { code, output } = check('imports');
  expect(code).not.toBe(0);
  for (const [index, [from, to]] of forbidden.entries())
    expect(output).toContain(`${from} sees only its own: ${from}/use${index}.ts → ${to}/it${index}.ts`);
  for (const [room, above] of rooms)
    expect(output).toContain(`${room} sees no room above it: ${room}/use.ts → ${above}/it.ts`);
  expect(output).toContain('hosts and workers do not sign in: control-plane/grpc/sign-in.ts');
  expect(output).toContain('pages of the console do not see each other: console/src/pages/two/use.ts');
  expect(output).toContain('the domain is pure: agent/domain/io.ts');
  expect(output).toContain('no cycles: shared/');
  expect(output).toContain('no two folders that import each other: agent/one');
});

it('a promise that nobody waits for, and a file that is not formatted, fail the check', () => {
  put('shared/lint.ts', 'export function f(): void {\n  Promise.resolve();\n}\n');
  expect(check('lint')).toMatchObject({ code: 1, output: expect.stringContaining('no-floating-promises') as string });
  put(
    'console/src/style.tsx',
    'export const used = <p style={{ color: "red" }} dangerouslySetInnerHTML={{ __html: "" }} />;\n',
  );
  const { output } = check('lint');
  expect(output).toContain('styles belong into a CSS module');
  expect(output).toContain('no-danger');
  put('shared/format.ts', 'export const a = "b"');
  expect(check('format')).toMatchObject({ code: 1, output: expect.stringContaining('shared/format.ts') as string });
});
