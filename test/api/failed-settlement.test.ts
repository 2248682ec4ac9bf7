import type BetterSqlite3 from 'better-sqlite3';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { MINUTE_MS } from '../../shared/time.js';
import { sql, statement } from '../../control-plane/store/sql.js';
import { TestControlPlane } from '../harness/control-plane.js';
import { makePoor } from '../harness/poor.js';

let test: TestControlPlane;
let templateId: string;
beforeAll(async () => {
  test = await TestControlPlane.start();
  templateId = await test.template();
});
afterAll(() => test.stop());

const poorOf = () => makePoor(test, templateId);

const lagS = async () => {
  const text = await (await fetch(`${test.url}/metrics`)).text();
  return Number(/^gpurent_settlement_lag_seconds (\S+)$/m.exec(text)?.[1]);
};

it('An organization that cannot be settled holds up no other, is tried again after a minute, and is late all the while', async () => {
  const [broken, sound] = [await poorOf(), await poorOf()];
  const { store } = test.core.platform;
  const run = (text: string) => store.transact((tx) => tx.run(statement(sql.raw(text))));
  run(`CREATE TRIGGER broken BEFORE UPDATE OF spend_micro ON instances WHEN OLD.id = '${broken.id}'
      BEGIN SELECT RAISE(ABORT, 'broken'); END`);
  for (const poor of [broken, sound]) await poor.agent.speak(poor.id);
  test.clock.advance(MINUTE_MS);
  for (const poor of [broken, sound]) await poor.agent.speak(poor.id);
  test.advance(MINUTE_MS);
  expect((await sound.read()).spend_micro).toBeGreaterThan(0);
  expect((await broken.read()).spend_micro).toBe(0);
  // However often it was tried.
  expect(await lagS()).toBeGreaterThanOrEqual(60);
  test.advance(MINUTE_MS);
  expect(await lagS()).toBeGreaterThanOrEqual(120);
  const told = `organization ${broken.renter.organizationId} cannot be settled: broken`;
  const tries = test.logged(50).filter((line) => line.includes(told));
  expect(tries).toHaveLength(2);
  run('DROP TRIGGER broken');
  test.advance(MINUTE_MS);
  expect((await broken.read()).spend_micro).toBeGreaterThan(0);
  expect(await lagS()).toBe(0);
});

it('A disk that is full for a while puts off nobody', async () => {
  const poor = await poorOf();
  const { connection } = test.core.platform.store as unknown as { connection: BetterSqlite3.Database };
  connection.pragma('query_only = ON');
  test.advance(5 * MINUTE_MS);
  connection.pragma('query_only = OFF');
  await poor.agent.speak(poor.id);
  test.advance(1_000);
  expect((await poor.read()).spend_micro).toBeGreaterThan(0);
});
