import { MINUTE_MS, act, confirm, removeSetApart, startAgain } from './actions.js';
import { CONVERGED, INVARIANTS, judge } from './invariants.js';
import { unplanAll } from './schedules.js';
import { look, type Invariants } from './view.js';
import { World, type Counts, type Scale } from './world.js';

export interface Outcome {
  seed: number;
  /** What is wrong, after which step; absent when everything held. */
  failure?: string;
  digest: string;
  counts: Counts;
}

export interface Options {
  /** Told what happens, line by line. */
  tell?: (line: string) => void;
  /** Looks at this invariant alone. */
  only?: string;
  /** Looked at after each step, besides the invariants; returns what is wrong. */
  check?: (world: World) => string | undefined;
  groupsCommits?: boolean;
  hasLimits?: boolean;
}

const SCALE: Scale = { hosts: 2, gpusPerHost: 3, organizations: 3 };
/** How long anything may take, after which a healed world has settled. */
export const HEALING_MS = 31 * MINUTE_MS;
/** What was set off by an act of the last step has ended by then. */
const LONGEST_FAULT_MS = 71 * MINUTE_MS;

/** One seed: random people on a faulty world for so many steps, then healing. */
export async function simulate(
  seed: number,
  steps: number,
  { tell, only, check, groupsCommits = false, hasLimits = false }: Options = {},
): Promise<Outcome> {
  const world = await World.make(seed, { ...SCALE, groupsCommits, hasLimits }, tell);
  const [always, converged] = [chosen(INVARIANTS, only), chosen(CONVERGED, only)];
  let taken = 0;
  try {
    let view = look(world);
    let failure: string | undefined;
    for (; taken < steps && failure === undefined; taken++) {
      changeWeather(world, taken);
      world.lookedAt = world.timeline.now;
      actTogether(world);
      await pass(world);
      view = look(world, view);
      failure = judge(view, always) ?? check?.(world);
    }
    if (failure === undefined && Object.keys(converged).length > 0) {
      world.lookedAt = world.timeline.now;
      await heal(world);
      view = look(world, view);
      failure = judge(view, always) ?? judge(view, converged);
    }
    if (failure !== undefined) explain(world, failure, tell);
    const outcome = { seed, digest: world.digest(), counts: world.counts(taken) };
    return failure === undefined ? outcome : { ...outcome, failure: `after ${taken} steps: ${failure}` };
  } finally {
    await world.close();
  }
}

/** The invariants, or only the one of a name. */
export function chosen(invariants: Invariants, only: string | undefined): Invariants {
  if (only === undefined) return invariants;
  return Object.fromEntries(Object.entries(invariants).filter(([name]) => name === only));
}

/** What the store and the host know of the instance that a failure names. */
function explain(world: World, failure: string, tell: (line: string) => void = () => {}): void {
  for (const [id] of failure.matchAll(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g)) {
    for (const row of world.rows<object>('SELECT * FROM commands WHERE instance_id = ? ORDER BY sequence', id))
      tell(JSON.stringify(row));
    for (const row of world.rows<object>('SELECT * FROM events WHERE instance_id = ? ORDER BY number', id))
      tell(JSON.stringify(row));
    for (const { options, docker } of world.hosts)
      tell(`${options.name}: ${JSON.stringify(docker.containers.get(id))}`);
  }
}

/** The weather changes every fifty steps. */
function changeWeather(world: World, step: number): void {
  if (step % 50 !== 0) return;
  const { random, faults } = world;
  const some = (most: number) => (random.chance(0.5) ? random.fraction() * most : 0);
  Object.assign(faults.wire, { loss: some(0.3), duplication: some(0.5), reordering: some(0.3) });
  Object.assign(faults.docker, { failure: some(0.2), late: some(0.1), diskFull: some(0.1) });
  for (const host of world.hosts) host.crashRate = some(0.02);
  world.controlPlane.crashRate = some(0.0005);
}

/** Mostly one thing, sometimes several in the same moment. */
function actTogether(world: World): void {
  const times = world.random.weighted([
    [10, 1],
    [1, 3],
    [0.5, 6],
  ]);
  for (let time = 0; time < times; time++) act(world);
}

async function pass(world: World): Promise<void> {
  const { random } = world;
  const ms = random.weighted([
    [50, random.between(0, 2_000)],
    [40, random.between(2_000, 30_000)],
    [3, random.between(60_000, 900_000)],
    [1.5, 40 * MINUTE_MS],
  ]);
  await world.timeline.advance(Math.max(ms, world.patience));
  world.patience = 0;
}

async function heal(world: World): Promise<void> {
  await repair(world, LONGEST_FAULT_MS);
  await world.timeline.advance(HEALING_MS);
}

/** Everything is repaired, operators do what is theirs to do, nobody else asks for anything. */
export async function repair(world: World, longestFaultMs: number): Promise<void> {
  Object.assign(world.faults.wire, { loss: 0, duplication: 0, reordering: 0 });
  Object.assign(world.faults.docker, { failure: 0, late: 0, diskFull: 0 });
  Object.assign(world.controlPlane, { crashRate: 0, groupCrashRate: 0 });
  if (world.habits) world.habits.quietFrom = world.timeline.now;
  for (const host of world.hosts) host.crashRate = 0;
  await world.timeline.advance(longestFaultMs);
  world.controlPlane.wall.offset = 0;
  for (const host of world.hosts) host.wall.offset = 0;
  world.endRival();
  for (const { docker, network } of world.hosts) {
    docker.startDaemon();
    if (!network) continue;
    network.toControlPlane = true;
    network.toHost = true;
    network.reap(true);
  }
  world.comeBack();
  unplanAll(world);
  await world.timeline.advance(2 * MINUTE_MS);
  confirm(world);
  for (const found of world.rows<{ id: string; instance_id: string }>('SELECT * FROM quarantine')) {
    removeSetApart(world, found);
  }
  if (world.limits) startAgain(world);
}
