import type { InstanceStatus } from '../../control-plane/domain/instances/instance-state.js';
import { MINUTE_MS, request } from './actions.js';
import type { Moment } from './faults.js';
import { CONVERGED, INVARIANTS, judge } from './invariants.js';
import { HEALING_MS, chosen, repair } from './run.js';
import { deployOne, type Scenario } from './scenarios.js';
import { look, type Invariants, type View } from './view.js';
import { World, type Attempted } from './world.js';

export interface Step {
  /** How many moments of the kind there were. */
  moments: number;
  failure?: string;
}

export interface Looking {
  isWhole?: boolean;
  only?: string | undefined;
}

const QUIET_MS = MINUTE_MS;
/** Most worlds have settled by then. */
const SOON_MS = 3 * MINUTE_MS;

/**
 * Plays a scenario in which the nth moment of a kind goes wrong, then repairs the world, and judges where that has led: soon if it has
 * settled by then, or in any case after all the time that it may take (`isWhole`). With `only`, it looks at one invariant alone.
 */
export async function step(
  scenario: Scenario,
  moment: Moment,
  nth: number,
  { isWhole = false, only }: Looking = {},
): Promise<Step> {
  const world = await World.make(1, { hosts: 1, gpusPerHost: 2, organizations: 1 });
  try {
    const id = await prepare(world, scenario);
    const [host] = world.hosts;
    if (!host) throw new Error('there is no host');
    await scenario.before?.({ world, host, id });
    const before = look(world);
    world.lookedAt = world.timeline.now;
    world.fate.plan(moment, nth);
    const attempted = (await scenario.act({ world, host, id })) as Attempted | undefined;
    await world.timeline.advance(scenario.windowMs ?? QUIET_MS);
    const moments = world.fate.rest();
    await repair(world, 0);
    const waits = isWhole ? [HEALING_MS] : [SOON_MS, HEALING_MS - SOON_MS];
    const failure = await wrongInTheEnd(world, before, waits, {
      always: chosen(INVARIANTS, only),
      settled: chosen(CONVERGED, only),
      ended: () => (only === undefined ? misled(world, scenario, attempted?.outcome) : undefined),
    });
    return failure === undefined ? { moments } : { moments, failure };
  } finally {
    await world.close();
  }
}

/** Judges a repaired world after each of some waits, in milliseconds, until it has settled. */
async function wrongInTheEnd(
  world: World,
  before: View,
  waits: readonly number[],
  { always, settled, ended }: { always: Invariants; settled: Invariants; ended: () => string | undefined },
): Promise<string | undefined> {
  let unsettled: string | undefined;
  let view = before;
  for (const ms of waits) {
    await world.timeline.advance(ms);
    view = look(world, view);
    const broken = judge(view, always);
    if (broken !== undefined) return broken;
    unsettled = judge(view, settled) ?? ended();
    if (unsettled === undefined) return undefined;
    world.lookedAt = world.timeline.now;
  }
  return unsettled;
}

async function prepare(world: World, { from }: Scenario): Promise<string> {
  if (from === null) return '';
  deployOne(world);
  // The longest pull.
  await world.timeline.advance(25_000);
  const [instance] = world.rows<{ id: string }>('SELECT id FROM instances');
  if (!instance) throw new Error('nothing was deployed');
  if (from === 'stopped') request(world, 'stop', instance.id);
  await world.timeline.advance(30_000);
  const [{ status } = { status: '' }] = world.rows<{ status: string }>('SELECT status FROM instances');
  if (status !== from) throw new Error(`the instance is ${status}, not ${from}`);
  return instance.id;
}

/** What was taken up leads where it should; what was not may have been, or may not. */
function misled(world: World, { ends }: Scenario, outcome: string | undefined): string | undefined {
  const found = world.rows<{ id: string; status: InstanceStatus; error_code: string | null }>(
    'SELECT * FROM instances',
  );
  const isSure = outcome === 'done' || outcome === undefined;
  for (const { id, status, error_code } of found) {
    if (isSure && !ends.includes(status)) return `${id} is ${status} (${error_code}), not ${ends.join(' or ')}`;
    if (status === 'error' && error_code === null) return `${id} is in error without a reason`;
  }
  return outcome === 'done' && found.length === 0 ? 'there is no instance' : undefined;
}
