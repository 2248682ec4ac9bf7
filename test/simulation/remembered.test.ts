import { expect, it } from 'vitest';
import { staleOf } from '../harness/remembered.js';
import { Crash } from './host.js';
import { simulate } from './run.js';
import type { World } from './world.js';

/** Rows of the same tables change as in seed 1, which takes five times as long as the slowest of these. */
const SEEDS = [2, 3, 7];
const STEPS = 150;
/** How often the view of an instance has changed at least: a seed in which little happens would prove little. */
const LEAST_CHANGED = 20;

/** Remembers everything, and says what of it the last step has made untrue. */
function look(world: World, see: (id: string, view: string) => void): string | undefined {
  if (!world.controlPlane.alive) return undefined;
  try {
    const { platform } = world.controlPlane;
    const [stale] = staleOf(platform);
    for (const { id } of world.rows<{ id: string }>('SELECT id FROM organizations'))
      platform.instancePages.of(id, '200');
    for (const { id } of world.rows<{ id: string }>('SELECT id FROM instances'))
      see(id, JSON.stringify(platform.instanceViews.of(id)));
    return stale;
  } catch (error) {
    if (error instanceof Crash) return undefined;
    throw error;
  }
}

it.each(SEEDS)('after whatever happens, what is remembered is what the database says (seed %i)', async (seed) => {
  const seen = new Map<string, string>();
  let changed = 0;
  const see = (id: string, view: string) => {
    if (seen.has(id) && seen.get(id) !== view) changed += 1;
    seen.set(id, view);
  };
  expect((await simulate(seed, STEPS, { check: (world) => look(world, see) })).failure).toBeUndefined();
  expect(changed).toBeGreaterThanOrEqual(LEAST_CHANGED);
});
