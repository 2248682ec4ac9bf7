import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { MINUTE_MS } from '../../shared/time.js';
import type { EventType } from '../../control-plane/domain/event.js';
import { query } from '../../control-plane/store/sql.js';
import { World } from '../contract/world.js';
import { listening } from '../harness/told.js';

const LOOK_MS = 15_000;

let world: World;
beforeAll(async () => {
  world = await World.make();
  world.test.advance(5 * MINUTE_MS);
});
afterAll(() => world.test.stop());

/** Returns how many events of a type each of the next looks tells. */
function ofEachLook(told: ReturnType<typeof listening>, type: EventType, looks: number): number[] {
  return Array.from({ length: looks }, () => {
    world.test.advance(LOOK_MS);
    return told(type).length;
  });
}

describe('one look tells operators of at most', () => {
  it('fifty GPUs, and the next looks of the others', async () => {
    const agent = await world.test.host({ gpus: 60 });
    const { gpus, ...inventory } = agent.inventory as { gpus: Record<string, unknown>[] };
    const unhealthy = gpus.map((gpu) => ({ ...gpu, healthy: false, reason: 'hot' }));
    const told = listening(world.test);
    await agent.claim({ inventory: { ...inventory, gpus: unhealthy } });
    expect(ofEachLook(told, 'gpu.unhealthy', 3)).toEqual([50, 10, 0]);
    agent.close();
  });

  it('twenty workloads in quarantine', async () => {
    const agent = await world.test.host({ gpus: 1 });
    agent.disconnect();
    for (let count = 0; count < 25; count++) {
      const workload = { state: 'WORKLOAD_STATE_STOPPED', sequence: 7, sshPort: 40_000 + count, gpuUuids: [] } as const;
      agent.workloads.set(randomUUID(), { ...workload, gpuUuids: [], diskGb: 10, lines: [] });
    }
    const told = listening(world.test);
    await agent.connect();
    expect(ofEachLook(told, 'workload.quarantined', 3)).toEqual([20, 5, 0]);
    agent.close();
  });

  it('fifty commands that are stuck', async () => {
    const { agent, body } = await world.host();
    const { id } = await world.running(body);
    agent.automatic = false;
    await world.admin.api.post(`/v1/instances/${id}/stop`);
    const { store } = world.test.core.platform;
    store.transact((tx) => {
      const ofInstance = query.selectFrom('commands').selectAll().where('instance_id', '=', id);
      const open = tx.get(ofInstance.where('state', '=', 'open'));
      if (!open) throw new Error('no command is open');
      for (let count = 1; count < 55; count++)
        tx.run(query.insertInto('commands').values({ ...open, id: randomUUID(), sequence: open.sequence + count }));
    });
    const told = listening(world.test);
    world.test.advance(15 * MINUTE_MS - 1);
    expect(told('command.stuck')).toEqual([]);
    expect(ofEachLook(told, 'command.stuck', 3)).toEqual([50, 5, 0]);
    agent.close();
  });
});

it('a GPU that comes and goes is told of once in ten minutes, also to its renter', async () => {
  const { agent, body } = await world.host({ gpus: 1 });
  await world.running(body);
  const { gpus, ...inventory } = agent.inventory as { gpus: Record<string, unknown>[] };
  const unhealthy = gpus.map((gpu) => ({ ...gpu, healthy: false, reason: 'hot' }));
  const told = listening(world.test);
  const toldRenter = listening(world.test, world.admin.organizationId);
  for (let minute = 0; minute < 10; minute++) {
    await agent.claim({ inventory: { ...inventory, gpus: minute % 2 ? gpus : unhealthy } });
    world.test.advance(MINUTE_MS - LOOK_MS);
    world.test.advance(LOOK_MS);
  }
  expect(told('gpu.unhealthy')).toHaveLength(1);
  expect(told('gpu.healthy')).toHaveLength(0);
  const renters = () => toldRenter().flatMap(({ type }) => (type.startsWith('instance.gpu_') ? [type] : []));
  expect(renters()).toEqual(['instance.gpu_unhealthy']);
  world.test.advance(MINUTE_MS);
  expect(told('gpu.healthy')).toHaveLength(1);
  expect(renters()).toEqual(['instance.gpu_healthy']);
  agent.close();
});

it('the budgets of twenty thousand instances are remembered, those that were used last', () => {
  const { platform } = world.test.core;
  const mayStill = (id: string) => platform.hostBudgets.mayTell(id);
  for (let count = 0; count < 20; count++) expect([mayStill('first'), mayStill('second')]).toEqual([true, true]);
  for (let count = 2; count < 20_000; count++) mayStill(`other ${count}`);
  expect([mayStill('first'), mayStill('second')]).toEqual([false, false]);
  for (let count = 0; count < 19_999; count++) mayStill(`another ${count}`);
  expect([mayStill('second'), mayStill('first')]).toEqual([false, true]);
});
