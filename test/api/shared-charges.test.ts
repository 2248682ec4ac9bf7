import BetterSqlite3 from 'better-sqlite3';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { sql, statement } from '../../control-plane/store/sql.js';
import { World } from '../contract/world.js';
import { HOUR_MS } from '../harness/poor.js';

const GPU = 1_000_000;

interface Sum {
  key: string | null;
  gpu_micro: number;
  disk_micro: number;
}

let world: World;
beforeAll(async () => {
  world = await World.make();
});
afterAll(() => world.stop());

const found = (text: string): unknown[] => {
  const database = new BetterSqlite3(world.test.databaseFile, { readonly: true });
  const rows = database.prepare(text).all();
  database.close();
  return rows;
};

it('every charge of 25 instances that share a template is counted in each group', async () => {
  // The settlement writes each shared sum once: nothing may be lost in adding them up.
  const owner = await world.test.renter(1_000_000_000);
  const rowsOf = async (by: string) => {
    const { items } = await owner.api.get<{ items: Sum[] }>(`/v1/billing/summary?by=${by}`);
    return items.map(({ key, gpu_micro, disk_micro }) => [key, gpu_micro, disk_micro]);
  };
  const crowd = await world.host({ gpus: 25, diskGb: 1_000 });
  const instances = await Promise.all(
    Array.from({ length: 25 }, (_, index) => world.running({ ...crowd.body, label: `${index % 3}` }, owner.api)),
  );
  world.test.advance(HOUR_MS);
  for (const { id } of instances) await crowd.agent.speak(id);
  world.test.advance(0);
  expect(await rowsOf('template')).toEqual([[world.templateId, 25 * GPU, 0]]);
  expect(await rowsOf('label')).toEqual([
    ['0', 9 * GPU, 0],
    ['1', 8 * GPU, 0],
    ['2', 8 * GPU, 0],
  ]);
  const machines = `SELECT gpu_micro FROM machine_days WHERE machine_id = '${crowd.agent.hostId}'`;
  expect(found(machines)).toEqual([{ gpu_micro: 25 * GPU }]);
  const days = statement<{ gpu_micro: number }>(
    sql`SELECT gpu_micro FROM organization_days WHERE organization_id = ${owner.organizationId}`,
  );
  expect(world.test.core.platform.store.transact((tx) => tx.all(days))).toEqual([{ gpu_micro: 25 * GPU }]);
});
