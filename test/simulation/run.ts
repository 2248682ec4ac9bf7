import { deploy } from '../../control-plane/services/instances/deploy.js';
import { destroy } from '../../control-plane/services/instances/destroy.js';
import { start } from '../../control-plane/services/instances/start.js';
import { stop } from '../../control-plane/services/instances/stop.js';
import { setDisputed } from '../../control-plane/services/disputes.js';
import { declareLost } from '../../control-plane/services/machine-loss.js';
import { cordon, uncordon } from '../../control-plane/services/machines.js';
import { CONVERGED, INVARIANTS, judge, look } from './invariants.js';
import { Life } from './timeline.js';
import { World, type Counts, type Scale } from './world.js';

export interface Outcome {
  seed: number;
  /** What is wrong, after which step; absent when everything held. */
  failure?: string;
  digest: string;
  counts: Counts;
}

const SCALE: Scale = { hosts: 2, gpusPerHost: 3, organizations: 3 };
const MINUTE_MS = 60_000;
const HEALING_MS = 31 * MINUTE_MS;

/** One seed: random people on a faulty world for so many steps, then healing. */
export async function simulate(seed: number, steps: number, tell?: (line: string) => void): Promise<Outcome> {
  const world = await World.make(seed, SCALE, tell);
  let taken = 0;
  try {
    let view = look(world, new Map());
    let failure: string | undefined;
    for (; taken < steps && failure === undefined; taken++) {
      faultsOf(world, taken);
      world.lookedAt = world.timeline.now;
      act(world);
      await pass(world);
      view = look(world, view.instances);
      failure = judge(view, INVARIANTS);
    }
    if (failure === undefined) {
      await heal(world);
      view = look(world, view.instances);
      failure = judge(view, INVARIANTS) ?? judge(view, CONVERGED);
    }
    if (failure !== undefined) explain(world, failure, tell);
    const outcome = { seed, digest: world.digest(), counts: world.counts(taken) };
    return failure === undefined ? outcome : { ...outcome, failure: `after ${taken} steps: ${failure}` };
  } finally {
    await world.close();
  }
}

/** What the store and the host know of the instance that a failure names. */
function explain(world: World, failure: string, tell: (line: string) => void = () => {}): void {
  for (const [id] of failure.matchAll(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g)) {
    for (const row of world.rows<object>('SELECT * FROM commands WHERE instance_id = ? ORDER BY sequence', id))
      tell(JSON.stringify(row));
    for (const row of world.rows<object>('SELECT * FROM instance_events WHERE instance_id = ? ORDER BY id', id))
      tell(JSON.stringify(row));
    for (const { options, docker } of world.hosts)
      tell(`${options.name}: ${JSON.stringify(docker.containers.get(id))}`);
  }
}

/** The weather changes every fifty steps. */
function faultsOf(world: World, step: number): void {
  if (step % 50 !== 0) return;
  const { random, faults } = world;
  const some = (most: number) => (random.chance(0.5) ? random.fraction() * most : 0);
  Object.assign(faults.wire, { loss: some(0.3), duplication: some(0.5), reordering: some(0.3) });
  Object.assign(faults.docker, { failure: some(0.2), late: some(0.1), diskFull: some(0.1) });
  for (const host of world.hosts) host.crashRate = some(0.02);
  world.controlPlane.crashRate = some(0.0005);
}

function act(world: World): void {
  const { random, controlPlane } = world;
  const renter = random.pick(world.renters);
  const host = random.pick(world.hosts);
  if (!renter || !host) return;
  const instances = world.rows<{ id: string; organization_id: string }>(
    "SELECT id, organization_id FROM instances WHERE status <> 'destroyed'",
  );
  const instance = random.pick(instances);
  const owner = world.renters.find(({ organizationId }) => organizationId === instance?.organization_id);
  const onInstance = (what: string, work: (id: string) => unknown) => {
    if (instance && owner) world.attempt(`${what} ${instance.id}`, () => work(instance.id));
  };
  const caller = owner ?? renter;
  const action = random.weighted<() => void>([
    [6, () => rent(world)],
    [5, () => onInstance('stop', (id) => stop(controlPlane.platform, caller, id))],
    [5, () => onInstance('start', (id) => start(controlPlane.platform, caller, id))],
    [3, () => onInstance('destroy', (id) => destroy(controlPlane.platform, caller, id))],
    [1, () => dispute(world, renter.organizationId)],
    [
      1,
      () =>
        world.attempt('cordon', () =>
          (random.chance(0.3) ? cordon : uncordon)(controlPlane.platform, world.operator, host.machineId),
        ),
    ],
    [2, () => exit(world, host)],
    [0.3, () => vanish(world, host)],
    [0.5, () => host.crashAgent()],
    [0.2, () => host.loseJournal()],
    [0.3, () => restartDocker(world, host)],
    [0.2, () => host.reboot(random.chance(0.3) ? random.between(30, 70) * MINUTE_MS : random.between(10_000, 300_000))],
    [0.5, () => partition(world, host)],
    [0.3, () => controlPlane.crash()],
    [0.3, () => lose(world, host)],
    [0.3, () => jump(world, host)],
    [0.2, () => breakGpu(world, host)],
    [0.1, () => world.stayDown(random.chance(0.1) ? 1_440 * MINUTE_MS : random.between(MINUTE_MS, 60 * MINUTE_MS))],
    [10, () => {}],
  ]);
  action();
}

function rent(world: World): void {
  const { random } = world;
  const renter = random.pick(world.renters);
  const [offer_id, template_id] = [random.pick(world.offers), random.pick(world.templates)];
  if (!renter || !offer_id || !template_id) return;
  const request = {
    offer_id,
    template_id,
    disk_gb: random.between(10, 120),
    label: null,
    ssh_key_id: null,
    env_overrides: [],
  };
  world.attempt('deploy', () => deploy(world.controlPlane.platform, renter, request));
}

function dispute(world: World, organizationId: string): void {
  const open = world.random.chance(0.4);
  world.attempt(`dispute ${open}`, () =>
    setDisputed(world.controlPlane.platform, world.operator, organizationId, open),
  );
}

function exit(world: World, { docker }: World['hosts'][number]): void {
  const running = world.random.pick(docker.running());
  if (running && docker.up) docker.exit(running.instanceId, world.random.pick([0, 1, 137]) ?? 0);
}

/** Somebody removes a container behind the agent's back. */
function vanish(world: World, { docker }: World['hosts'][number]): void {
  const container = world.random.pick([...docker.containers.keys()]);
  if (!container || !docker.up) return;
  world.vanished.add(container);
  docker.remove(container);
  docker.removed.pop();
  docker.everStarted.delete(container);
}

function restartDocker(world: World, { docker }: World['hosts'][number]): void {
  docker.stopDaemon(world.random.chance(0.5));
  world.timeline.schedule(new Life(), world.random.between(1_000, 40_000), () => docker.startDaemon());
}

function partition(world: World, { network }: World['hosts'][number]): void {
  if (!network) return;
  const { random, timeline } = world;
  network.toControlPlane = random.chance(0.3);
  network.toHost = random.chance(0.3);
  const ms = random.between(1_000, random.chance(0.2) ? 2_400_000 : 60_000);
  timeline.schedule(new Life(), random.between(1, ms), () => network.reap(true));
  timeline.schedule(new Life(), ms, () => {
    network.toControlPlane = true;
    network.toHost = true;
    network.reap(false);
  });
}

/** An operator gives a machine up; what is connected cannot be lost. */
function lose(world: World, { machineId }: World['hosts'][number]): void {
  world.attempt('lost', () => declareLost(world.controlPlane.platform, world.operator, machineId));
}

/** A wall clock steps, here or there, and is set right again after a while. */
function jump(world: World, host: World['hosts'][number]): void {
  const { random, timeline } = world;
  const { wall } = random.chance(0.5) ? host : world.controlPlane;
  const step = random.pick([60, -60, 1_440, -1_440]) ?? 0;
  const set = (change: number) => {
    wall.offset += change;
    world.jumpedAt = timeline.now;
  };
  set(step * MINUTE_MS);
  timeline.schedule(new Life(), random.between(1_000, 20 * MINUTE_MS), () => set(-step * MINUTE_MS));
}

function breakGpu(world: World, { gpus }: World['hosts'][number]): void {
  const gpu = world.random.pick(gpus);
  if (!gpu) return;
  Object.assign(gpu, { healthy: false, reason: 'fell off the bus' });
  world.timeline.schedule(new Life(), world.random.between(1_000, 600_000), () =>
    Object.assign(gpu, { healthy: true, reason: '' }),
  );
}

async function pass(world: World): Promise<void> {
  const { random } = world;
  const ms = random.weighted([
    [50, random.between(0, 2_000)],
    [40, random.between(2_000, 30_000)],
    [3, random.between(60_000, 900_000)],
    [1.5, 40 * MINUTE_MS],
  ]);
  await world.timeline.advance(ms);
}

/** Everything is repaired, nobody asks for anything. */
async function heal(world: World): Promise<void> {
  Object.assign(world.faults.wire, { loss: 0, duplication: 0, reordering: 0 });
  Object.assign(world.faults.docker, { failure: 0, late: 0, diskFull: 0 });
  world.controlPlane.crashRate = 0;
  for (const host of world.hosts) host.crashRate = 0;
  await world.timeline.advance(71 * MINUTE_MS);
  world.controlPlane.wall.offset = 0;
  for (const host of world.hosts) host.wall.offset = 0;
  for (const { docker, network } of world.hosts) {
    docker.startDaemon();
    if (!network) continue;
    network.toControlPlane = true;
    network.toHost = true;
    network.reap(true);
  }
  world.comeBack();
  await world.timeline.advance(HEALING_MS);
}
