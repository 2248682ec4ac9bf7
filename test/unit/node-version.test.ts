import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { refusalOfDriver, refusalOfNode } from '../../shared/node-version.js';

const { engines } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
  engines: { node: string };
};

it.each(['v20.19.0', 'v20.20.2', 'v22.12.0', 'v22.23.3', 'v24.0.0', 'v24.21.0', 'v26.4.0', 'v26.10.0'])(
  'runs with Node %s',
  (version) => {
    expect(refusalOfNode(version, engines.node)).toBeUndefined();
  },
);

it.each(['v18.20.8', 'v20.18.3', 'v21.7.0', 'v22.11.0', 'v23.11.0', 'v25.2.0', 'v26.3.1', 'v28.0.0', 'v200.19.0'])(
  'refuses Node %s, naming those that it runs with',
  (version) => {
    expect(refusalOfNode(version, engines.node)).toBe(
      `this is Node ${version.slice(1)}; install one of 20 (from 20.19), 22 (from 22.12), 24 (from 24.0), 26 (from 26.4)`,
    );
  },
);

it('refuses on Node 24 a driver that was compiled with headers that end it', () => {
  const ending = Buffer.from('\0_ZN4node28RemoveEnvironmentCleanupHookEPN2v87IsolateEPFvPvES3_\0');
  const sound = Buffer.from('\0_ZN4node25AddEnvironmentCleanupHookEPN2v87IsolateEPFvPvES3_\0');
  expect(refusalOfDriver('v24.21.0', ending)).toMatch(/^better-sqlite3 was compiled with headers of Node 24.19/);
  expect(refusalOfDriver('v24.21.0', sound)).toBeUndefined();
  // Later ones have what it asks for.
  expect(refusalOfDriver('v26.10.0', ending)).toBeUndefined();
});
