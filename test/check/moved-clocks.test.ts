import { readFileSync, readdirSync } from 'node:fs';
import { expect, it } from 'vitest';
import { movedClocks } from '../harness/moved-clocks.js';

const TESTS = new URL('../', import.meta.url);

it('a wait whose looks move a manual clock is found, also behind a function', () => {
  const found = [
    "await eventually('it', () => { clock.advance(1); return isOver; });",
    "await eventually('it', async () => { await market.pass(1, ...hosts); return isOver; });",
    "const looked = async () => { test.advance(1); return read(); }; await eventually('it', async () => (await looked()).over);",
    "async function later() { test.advance(1); } const isSo = async () => { await later(); return true; }; await eventually('it', isSo);",
    'await expect.poll(() => { clock.advance(1); return read(); }).toBe(1);',
  ];
  const others = [
    "await advanceUntil('it', { clock, stepMs: 1 }, () => isOver);",
    "clock.advance(1); await eventually('it', () => isOver);",
    "await later(); async function later() { test.advance(1); await eventually('it', () => isOver); }",
  ];
  expect(found.map(movedClocks)).toEqual(found.map(() => [1]));
  expect(others.map(movedClocks)).toEqual(others.map(() => []));
});

// How often a wait looks depends on how fast the machine is: then so does how much time passes on the clock.
it('no test moves a manual clock while it waits: advanceUntil does', () => {
  const files = readdirSync(TESTS, { recursive: true, encoding: 'utf8' }).filter((file) => /(?<!\.d)\.ts$/.test(file));
  expect(files.length).toBeGreaterThan(500);
  const lines = files
    .filter((file) => !file.startsWith('fixtures/') && file !== 'check/moved-clocks.test.ts')
    .flatMap((file) => movedClocks(readFileSync(new URL(file, TESTS), 'utf8')).map((line) => `${file}:${line}`));
  expect(lines).toEqual([]);
});
