import { confirmClock } from '../../control-plane/services/reconciler/clock.js';
import type { InstanceAction, InstanceStatus } from '../../control-plane/domain/instances/instance-state.js';
import { Refusal } from '../../control-plane/domain/refusal.js';
import { adopt } from '../../control-plane/services/actions/adopt.js';
import { grantCredit } from '../../control-plane/services/billing/ledger/credits.js';
import { setSpendCaps } from '../../control-plane/services/billing/caps/spend-caps.js';
import { setDisputed } from '../../control-plane/services/billing/payments/disputes.js';
import { deploy } from '../../control-plane/services/actions/deploy.js';
import { destroy } from '../../control-plane/services/actions/destroy.js';
import type { InstanceDetails } from '../../control-plane/services/actions/instance-details.js';
import { getInstance } from '../../control-plane/services/actions/read.js';
import { start } from '../../control-plane/services/actions/start.js';
import { stop } from '../../control-plane/services/actions/stop.js';
import { declareLost } from '../../control-plane/services/reconciler/lost-machines.js';
import { cordon, uncordon } from '../../control-plane/services/machines/machines.js';
import { removeQuarantined } from '../../control-plane/services/reconciler/quarantine.js';
import type { SimHost } from './host.js';
import { relaxLimits } from './relax-limits.js';
import { plan } from './schedules.js';
import { ProcessHandle } from './timeline.js';
import type { Attempted, World } from './world.js';

export const MINUTE_MS = 60_000;
const DOLLAR_MICRO = 1_000_000;

/** People do something, or something breaks. */
export function act(world: World): void {
  const { random, controlPlane } = world;
  const host = random.pick(world.hosts);
  const renter = random.pick(world.renters);
  if (!host || !renter) return;
  relaxLimits(world);
  const action = random.weighted<() => void>([
    [6, () => rent(world)],
    [5, () => request(world, 'stop')],
    [5, () => request(world, 'start')],
    [3, () => request(world, 'destroy')],
    [1, () => hurry(world)],
    [2, () => plan(world)],
    [1, () => topUp(world)],
    [1, () => overspend(world)],
    [1, () => fallBehind(world)],
    [1, () => dispute(world, renter.organizationId)],
    [1, () => toggleCordon(world, host)],
    [0.5, () => judgeQuarantine(world)],
    [1, () => confirm(world)],
    [2, () => exit(world, host)],
    [0.3, () => vanish(world, host)],
    [0.5, () => host.crashAgent()],
    [0.2, () => loseJournal(world, host)],
    [0.3, () => restartDocker(world, host)],
    [0.2, () => host.reboot(random.chance(0.3) ? random.between(30, 70) * MINUTE_MS : random.between(10_000, 300_000))],
    [0.5, () => partition(world, host)],
    [1, () => strand(world)],
    [0.3, () => controlPlane.crash()],
    [0.3, () => lose(world, host)],
    [0.3, () => jump(world, host)],
    [0.2, () => breakGpu(world, host)],
    [0.1, () => world.stayDown(random.chance(0.1) ? 1_440 * MINUTE_MS : random.between(MINUTE_MS, 60 * MINUTE_MS))],
    [0.5, () => world.takeBackup()],
    [0.1, () => world.restoreBackup()],
    [0.05, () => world.startRival()],
    [10, () => {}],
  ]);
  action();
}

export function rent(world: World, renter = world.random.pick(world.renters)): Attempted | undefined {
  const { random } = world;
  const [offer_id, template_id] = [random.pick(world.offers), random.pick(world.templates)];
  if (!renter || !offer_id || !template_id) return undefined;
  const request = {
    offer_id,
    template_id,
    disk_gb: random.between(10, 300),
    label: null,
    ssh_key_id: null,
    env_overrides: [],
  };
  return world.attempt('deploy', () => {
    const { platform } = world.controlPlane;
    const answer = deploy(platform, renter, { ...request, ...world.limits?.next(platform.clock.now()) });
    judgeCover(world, renter.organizationId);
    return answer;
  });
}

/** One hour of everything that the organization has, written down apart from the server's sum. */
const BURN = `
  SELECT balance_micro, (
    SELECT coalesce(sum(
      CASE WHEN status IN ('creating', 'starting', 'running') THEN price_per_hour_micro ELSE 0 END +
      CASE WHEN status IN ('creating', 'starting', 'running', 'stopping', 'stopped') AND lost_at IS NULL AND removed_at IS NULL
        THEN storage_price_per_gb_hour_micro * instances.disk_gb ELSE 0 END
    ), 0) FROM instances JOIN machines ON machines.id = machine_id WHERE organization_id = organizations.id) AS burn
  FROM organizations WHERE id = ?`;

function judgeCover(world: World, organizationId: string): void {
  const [row] = world.rows<{ balance_micro: number; burn: number }>(BURN, organizationId);
  if (!row || row.balance_micro >= row.burn) return;
  world.witness.wrong('what is accepted is covered', `${row.balance_micro} of ${row.burn} an hour`);
}

/** Whether a start, which is refused later than it is asked for, was accepted. */
function hasBegun(world: World, id: string): boolean {
  return world.rows("SELECT 1 FROM instances WHERE id = ? AND status = 'starting'", id).length > 0;
}

/** Somebody pays. */
function topUp(world: World): void {
  const { random, controlPlane, operator } = world;
  const renter = random.pick(world.renters);
  const amount_micro = random.between(1, 30) * DOLLAR_MICRO;
  if (!renter) return;
  const credit = { amount_micro, reason: 'simulation' };
  world.attempt('credit', () => grantCredit(controlPlane.platform, operator, renter.organizationId, credit));
  // A day may pass before anybody looks again.
  const [row] = world.rows<{ balance_micro: number }>(BALANCE, renter.organizationId);
  if (row) world.witness.seeBalance(renter.organizationId, row.balance_micro, world.timeline.now);
}

const BALANCE = 'SELECT balance_micro FROM organizations WHERE id = ?';

/** Whoever has little looks away while something runs, until nothing is left. */
function overspend(world: World): void {
  const renter = world.random.pick(world.renters.slice(1));
  const running = `SELECT balance_micro, sum(price_per_hour_micro) AS burn FROM organizations
    JOIN instances ON organization_id = organizations.id AND status = 'running' WHERE organizations.id = ?`;
  const [row] = world.rows<{ balance_micro: number; burn: number | null }>(running, renter?.organizationId);
  if (row?.burn) world.patience = Math.ceil((row.balance_micro / row.burn + 0.5) * 60 * MINUTE_MS);
  else rent(world, renter);
}

/** Whoever is in debt does nothing for a day, in which nothing happens to the control plane. */
function fallBehind(world: World): void {
  const { controlPlane } = world;
  if (world.rows(INDEBTED).length === 0 || !controlPlane.alive || controlPlane.wall.offset !== 0) return;
  world.note('a day passes');
  confirm(world);
  controlPlane.crashRate = 0;
  world.patience = 25 * 60 * MINUTE_MS;
}

const INDEBTED = `
  SELECT 1 FROM organizations JOIN instances ON organization_id = organizations.id
  WHERE balance_micro < 0 AND status IN ('stopped', 'error')`;

const USE_CASES = {
  stop: (world, caller, id) => stop(world.controlPlane.platform, caller, id),
  start: (world, caller, id) => start(world.controlPlane.platform, caller, id),
  destroy: (world, caller, id) => destroy(world.controlPlane.platform, caller, id),
} as const satisfies Record<InstanceAction, (world: World, caller: World['renters'][number], id: string) => unknown>;

/** A renter asks for something, whether it is possible now or not; what the API says of it is held against API rule 26. */
export function request(world: World, action: InstanceAction, wanted?: string): Attempted | undefined {
  const instances = world.rows<{ id: string; organization_id: string; status: InstanceStatus }>(
    'SELECT id, organization_id, status FROM instances WHERE ? IS NULL OR id = ?',
    wanted ?? null,
    wanted ?? null,
  );
  const live = instances.filter(({ status }) => status !== 'destroyed');
  const instance = world.random.pick(world.random.chance(0.05) ? instances : live);
  const owner = world.renters.find(({ organizationId }) => organizationId === instance?.organization_id);
  if (!instance || !owner) return undefined;
  const { id, status } = instance;
  return world.attempt(`${action} ${id}`, () => {
    try {
      world.witness.offered(status, shownActions(getInstance(world.controlPlane.platform, owner, id)));
      const answer = USE_CASES[action](world, owner, id);
      if (action === 'start' && hasBegun(world, id)) judgeCover(world, owner.organizationId);
      if (!(answer instanceof Promise)) world.witness.acted(status, action, true);
      return answer instanceof Promise
        ? answer.catch((error: unknown) => judged(world, status, action, error))
        : answer;
    } catch (error) {
      return judged(world, status, action, error);
    }
  });
}

/** The renter who has plenty lifts the caps, starts what is stopped, and rents what is stopped when it is idle. */
export function startAgain(world: World): void {
  const [renter] = world.renters;
  if (!renter) return;
  const caps = { burn_per_hour_micro: null, day_micro: null, month_micro: null };
  world.attempt('lift the caps', () => setSpendCaps(world.controlPlane.platform, renter, null, caps));
  const stopped = world.rows<{ id: string }>(
    "SELECT id FROM instances WHERE status = 'stopped' AND organization_id = ?",
    renter.organizationId,
  );
  for (const { id } of stopped) request(world, 'start', id);
  const [template_id] = world.templates;
  for (const offer_id of world.offers) {
    const choice = { offer_id, template_id: template_id ?? '', disk_gb: 10, label: null, ssh_key_id: null };
    const request = { ...choice, env_overrides: [], idle_stop_minutes: 8 };
    const { outcome } = world.attempt('deploy', () => deploy(world.controlPlane.platform, renter, request));
    if (outcome === 'done') return;
  }
}

/** A renter who cannot wait asks for several things at once. */
function hurry(world: World): void {
  const live = world.rows<{ id: string }>("SELECT id FROM instances WHERE status <> 'destroyed'");
  const instance = world.random.pick(live);
  if (!instance) return;
  for (const action of ['stop', 'destroy', 'destroy', 'start'] as const) {
    if (world.random.chance(0.5)) request(world, action, instance.id);
  }
}

function shownActions(instance: InstanceDetails): readonly string[] {
  return instance.allowed_actions;
}

function judged(world: World, status: InstanceStatus, action: InstanceAction, error: unknown): never {
  const impossible =
    error instanceof Refusal && error.code === 'INVALID_STATE' && error.message.includes('not possible');
  if (impossible) world.witness.acted(refusedState(status, error), action, false);
  throw error;
}

/**
 * The state for which an action was refused. A request settles its organization first, so it can meet an instance that this settlement
 * destroys or stops; the refusal undoes the settlement, and the next one does it again.
 */
function refusedState(status: InstanceStatus, { message }: Refusal): InstanceStatus {
  const named = /^the instance is (\w+);/.exec(message)?.[1];
  return named === 'destroying' || named === 'stopping' ? named : status;
}

export function dispute(world: World, organizationId: string, open = world.random.chance(0.4)): void {
  world.attempt(`dispute ${open}`, () =>
    setDisputed(world.controlPlane.platform, world.operator, organizationId, open),
  );
}

function toggleCordon(world: World, { machineId }: SimHost): void {
  const change = world.random.chance(0.3) ? cordon : uncordon;
  world.attempt('cordon', () => change(world.controlPlane.platform, world.operator, machineId));
}

interface SetApart {
  id: string;
  machine_id: string;
  instance_id: string;
  gpus: number;
}

/** The operator gives a workload that a restored store does not know to somebody, or has it removed. */
export function judgeQuarantine(world: World): void {
  const { random, controlPlane, operator } = world;
  const found = random.pick(
    world.rows<SetApart>(
      'SELECT *, (SELECT count(*) FROM quarantine_gpus WHERE quarantine_id = quarantine.id) AS gpus FROM quarantine',
    ),
  );
  if (!found) return;
  if (random.chance(0.5)) return removeSetApart(world, found);
  const [offer] = world.rows<{ id: string }>(
    'SELECT id FROM offers WHERE machine_id = ? AND num_gpus = ?',
    found.machine_id,
    found.gpus,
  );
  const [renter, template_id] = [random.pick(world.renters), random.pick(world.templates)];
  if (!offer || !renter || !template_id) return;
  const organization_id = renter.organizationId;
  const adoption = { organization_id, template_id, offer_id: offer.id, disk_gb: 10, label: null };
  world.attempt('adopt', () => adopt(controlPlane.platform, operator, found.id, adoption));
}

export function removeSetApart(world: World, { id, instance_id }: Pick<SetApart, 'id' | 'instance_id'>): void {
  world.witness.givenUp.add(instance_id);
  world.attempt('remove', () => removeQuarantined(world.controlPlane.platform, world.operator, id));
}

/** The operator looks at the clock, finds it wrong or right as it may be, and goes on with it. */
export function confirm(world: World): void {
  world.attempt('confirm', () => {
    confirmClock(world.controlPlane.platform, world.operator);
    world.confirmedAt = world.timeline.now;
  });
}

export function exit(world: World, { docker }: SimHost): void {
  const running = world.random.pick(docker.running());
  if (!running || !docker.up) return;
  world.witness.ended.add(running.instanceId);
  docker.exit(running.instanceId, world.random.pick([0, 1, 137]) ?? 0);
}

/** Somebody removes a container behind the agent's back. */
export function vanish(world: World, { docker }: SimHost): void {
  const container = world.random.pick([...docker.containers.keys()]);
  if (!container || !docker.up) return;
  world.witness.vanished.add(container);
  docker.remove(container);
  if (docker.removed.at(-1)?.[0] === container) docker.removed.pop();
  docker.everStarted.delete(container);
}

export function loseJournal(world: World, host: SimHost): void {
  world.note(`${host.options.name}: journal lost`);
  host.loseJournal();
}

export function restartDocker(world: World, { docker }: SimHost, liveRestore = world.random.chance(0.5)): void {
  docker.stopDaemon(liveRestore);
  world.timeline.schedule(new ProcessHandle(), world.random.between(1_000, 40_000), () => docker.startDaemon());
}

function partition(world: World, host: SimHost): void {
  const { random } = world;
  const ways = { toControlPlane: random.chance(0.3), toHost: random.chance(0.3) };
  cut(world, host, ways, random.between(1_000, random.chance(0.2) ? 2_400_000 : 60_000));
}

export function cut(
  { random, timeline }: World,
  { network }: SimHost,
  ways: { toControlPlane: boolean; toHost: boolean },
  ms: number,
): void {
  if (!network) return;
  Object.assign(network, ways);
  timeline.schedule(new ProcessHandle(), random.between(1, ms), () => network.reap(true));
  timeline.schedule(new ProcessHandle(), ms, () => {
    Object.assign(network, { toControlPlane: true, toHost: true });
    network.reap(false);
  });
}

/** A host is away for longer than anything may take, while its instances are told to stop. */
function strand(world: World): void {
  const host = world.random.pick(world.hosts.filter(({ docker }) => docker.running().length > 0));
  if (!host || !world.controlPlane.alive) return;
  cut(world, host, { toControlPlane: false, toHost: false }, world.random.between(35, 60) * MINUTE_MS);
  for (const { instanceId } of host.docker.running()) request(world, 'stop', instanceId);
  world.patience = 45 * MINUTE_MS;
}

/** An operator gives a machine up; what is connected cannot be lost. */
export function lose(world: World, { machineId }: SimHost): void {
  world.attempt('lost', () => declareLost(world.controlPlane.platform, world.operator, machineId));
}

/** A wall clock steps, here or there, and is set right again after a while. */
function jump(world: World, host: SimHost): void {
  const { random, timeline } = world;
  const { wall } = random.chance(0.5) ? host : world.controlPlane;
  const step = random.pick([60, -60, 1_440, -1_440]) ?? 0;
  const set = (change: number) => {
    world.note(
      `the clock of ${wall === host.wall ? host.options.name : 'the control plane'} is set by ${change / MINUTE_MS} min`,
    );
    wall.offset += change;
    world.jumpedAt = timeline.now;
  };
  set(step * MINUTE_MS);
  timeline.schedule(new ProcessHandle(), random.between(1_000, 20 * MINUTE_MS), () => set(-step * MINUTE_MS));
}

function breakGpu(world: World, { gpus }: SimHost): void {
  const gpu = world.random.pick(gpus);
  if (!gpu) return;
  Object.assign(gpu, { healthy: false, reason: 'fell off the bus' });
  world.timeline.schedule(new ProcessHandle(), world.random.between(1_000, 600_000), () =>
    Object.assign(gpu, { healthy: true, reason: '' }),
  );
}
