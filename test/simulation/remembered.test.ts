import { expect, it } from 'vitest';
import { instancePages, instanceViews } from '../../control-plane/services/actions/remembered-instances.js';
import { staleOf } from '../harness/remembered.js';
import { Crash } from './host.js';
import { simulate } from './run.js';
import type { World } from './world.js';

const SEEDS = [1, 2, 4, 6];
const STEPS = 150;

/** Remembers everything, and says what of it the last step has made untrue. */
function look(world: World): string | undefined {
  if (!world.controlPlane.alive) return undefined;
  try {
    const { platform } = world.controlPlane;
    const [stale] = staleOf(platform);
    for (const { id } of world.rows<{ id: string }>('SELECT id FROM organizations'))
      instancePages(platform).of(id, '200');
    for (const { id } of world.rows<{ id: string }>('SELECT id FROM instances')) instanceViews(platform).of(id);
    return stale;
  } catch (error) {
    if (error instanceof Crash) return undefined;
    throw error;
  }
}

it.each(SEEDS)('after whatever happens, what is remembered is what the database says (seed %i)', async (seed) => {
  expect((await simulate(seed, STEPS, { check: look })).failure).toBeUndefined();
});
