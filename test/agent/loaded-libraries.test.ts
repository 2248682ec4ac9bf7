import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

const APP = new URL('../../dist/agent/app.js', import.meta.url);
const PRINT = `
  await import('${APP.href}');
  const { createRequire } = await import('node:module');
  console.log(JSON.stringify(Object.keys(createRequire('${fileURLToPath(APP)}').cache)));
`;

it('an agent at rest has not loaded what few agents need, or only sometimes', () => {
  const printed = execFileSync(process.execPath, ['--input-type=module', '--eval', PRINT], { encoding: 'utf8' });
  const loaded = (JSON.parse(printed) as string[]).map(
    (file) => /.*node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(file)?.[1],
  );
  expect(loaded).toContain('dockerode');
  for (const library of [
    'ssh2',
    'protobufjs',
    '@grpc/proto-loader',
    'prom-client',
    '@peculiar/x509',
    'reflect-metadata',
  ])
    expect(loaded).not.toContain(library);
});
