import type { InstanceStatus } from '../../control-plane/domain/instances/instance-state.js';
import { GRACE_MS } from '../../control-plane/domain/deadlines.js';
import { TICK_MS } from './control-plane.js';
import { IDLE, NOTHING_IDLES } from './idle.js';
import { LEDGER } from './ledger.js';
import { LIMITS } from './limits.js';
import { SCHEDULED } from './schedules.js';
import { TOLD } from './told.js';
import { first, type Claim, type Invariants, type View } from './view.js';
import type { MachineView } from './machine-view.js';

const HOLDS_GPUS: readonly InstanceStatus[] = ['creating', 'starting', 'running', 'stopping'];
const STOP_LIMIT_MS = 30 * 60_000;
const MACHINE_DISK_GB = 500;

/** API rule 25, written down apart from the server's. */
const EDGES = new Set([
  'creating running',
  'creating error',
  'starting running',
  'starting stopped',
  'running stopping',
  'running error',
  'stopping stopped',
  'stopping running',
  'stopped starting',
  ...['creating', 'starting', 'running', 'stopping', 'stopped', 'error'].map((status) => `${status} destroying`),
  'destroying destroyed',
]);

export const INVARIANTS: Invariants = {
  ...LIMITS,
  ...IDLE,
  'only allowed edges': ({ edges }) =>
    first(edges, ({ instance_id, was, became }) =>
      EDGES.has(`${was} ${became}`) ? undefined : `${instance_id} went from ${was} to ${became}`,
    ),

  'destroyed is final, with nothing secret left': ({ instances, before }) =>
    first(instances.values(), ({ id, status, workload_encrypted, access_token_encrypted }) => {
      if (before?.instances.get(id)?.status === 'destroyed' && status !== 'destroyed')
        return `${id} is ${status} again`;
      if (status === 'destroyed' && (workload_encrypted ?? access_token_encrypted)) return `${id} keeps a secret`;
      return undefined;
    }),

  'started_at never changes': ({ instances, before }) =>
    first(instances.values(), ({ id, started_at }) => {
      const was = before?.instances.get(id)?.started_at ?? null;
      return was !== null && was !== started_at ? `${id} was started at ${was}, now at ${started_at}` : undefined;
    }),

  'sequences never fall': ({ instances, before }) =>
    first(instances.values(), ({ id, sequence }) =>
      (before?.instances.get(id)?.sequence ?? 0) > sequence ? `${id} fell to ${sequence}` : undefined,
    ),

  'what may run holds its GPUs': ({ instances, claims }) =>
    first(instances.values(), ({ id, status }) =>
      HOLDS_GPUS.includes(status) && !claims.some((claim) => claim.instance_id === id)
        ? `${id} is ${status} and holds no GPU`
        : undefined,
    ),

  // A start that was given up leaves its claims to the command that undoes it.
  'released means released': ({ instances, claims, commands }) =>
    first(instances.values(), ({ id, status, gpus_released }) => {
      if (status !== 'stopped' || gpus_released === 0) return undefined;
      const undoing = [...commands.values()].some(
        ({ instance_id, kind, state }) => instance_id === id && kind === 'release' && state === 'open',
      );
      const holds = claims.some(({ instance_id }) => instance_id === id);
      return holds && !undoing ? `${id} is released and holds a GPU` : undefined;
    }),

  'a claim ends only by what the host has confirmed': (view) =>
    first(view.before?.claims ?? [], (claim) =>
      isHeld(claim, view.claims) || isConfirmedDown(claim, view)
        ? undefined
        : `${claim.gpu_uuid} of ${claim.instance_id}`,
    ),

  'a GPU that a host uses is claimed by who uses it': ({ world, claims, quarantined }) =>
    first(world.hosts, ({ machineId, docker }) =>
      first(world.witness.unheard.has(machineId) ? [] : docker.running(), ({ instanceId, gpuUuids }) =>
        first(gpuUuids, (uuid) => {
          const holders = [...claims, ...quarantined].filter(
            ({ machine_id, gpu_uuid }) => machine_id === machineId && gpu_uuid === uuid,
          );
          if (holders.some(({ instance_id }) => instance_id === instanceId)) return undefined;
          return `${uuid} is used by ${instanceId} and claimed by ${holders[0]?.instance_id ?? 'nobody'}`;
        }),
      ),
    ),

  'no GPU is in two running containers': ({ world }) => first(world.hosts, ({ docker }) => docker.sharedGpus[0]),

  'a container that has been up is never made anew': ({ world }) =>
    first(world.hosts, ({ docker }) =>
      first(docker.remade, ([id, at]) => {
        const { unsure, restored } = world.witness;
        // Where the journal was lost and the store is an older copy, nobody knows of it any more.
        const isForgotten = restored && unsure.has(id);
        return at >= world.lookedAt && !isForgotten ? `${id} was made anew` : undefined;
      }),
    ),

  'no disk is removed that nobody gave up': ({ world: { hosts, witness, lookedAt }, instances }) =>
    first(hosts, ({ docker }) =>
      first(docker.removed, ([id, at]) => {
        if (at < lookedAt || witness.givenUp.has(id)) return undefined;
        return `${id} is ${instances.get(id)?.status} and its container was removed`;
      }),
    ),

  'an end is the workload’s own': ({ instances, before, world }) =>
    first(instances.values(), ({ id, status, error_code }) => {
      const isNew = status === 'error' && before?.instances.get(id)?.status !== 'error';
      const claimed = error_code === 'workload_completed' || error_code === 'workload_failed';
      const { ended, restored, unsure } = world.witness;
      // Where the journal was lost and the store is an older copy, nobody knows that it was told to stop; where the clock was
      // set, too, nobody knows that it went down with its host.
      const isForgotten = unsure.has(id) && (restored || world.jumpedAt > -Infinity);
      if (!isNew || !claimed || before === undefined || ended.has(id) || isForgotten) return undefined;
      return `${id} is ${error_code}, but nothing of it has ended by itself`;
    }),

  'committed disk is within the machine’s': ({ instances, world }) =>
    first(world.hosts, ({ machineId }) => {
      const live = [...instances.values()].filter(
        ({ machine_id, status }) => machine_id === machineId && status !== 'destroyed',
      );
      const committed = live.reduce((sum, { disk_gb }) => sum + disk_gb, 0);
      return committed > MACHINE_DISK_GB ? `${committed} GB are committed on ${machineId}` : undefined;
    }),

  'no stop hangs for longer than half an hour': ({ world }) => {
    const { controlPlane, timeline, witness, upSince, jumpedAt, confirmedAt } = world;
    const held = world.rows("SELECT 1 FROM meta WHERE key = 'clock_step'").length > 0;
    if (!controlPlane.alive || held) return undefined;
    // A clock that was set, and set right again, between two looks.
    const able = Math.max(upSince + GRACE_MS, jumpedAt + STOP_LIMIT_MS, confirmedAt + STOP_LIMIT_MS) + 2 * TICK_MS;
    if (timeline.now < able) return undefined;
    return first(witness.stoppingSince, ([id, since]) => {
      const age = timeline.now - since;
      return age > STOP_LIMIT_MS + 2 * TICK_MS ? `${id} is stopping for ${Math.round(age / 1000)} s` : undefined;
    });
  },

  ...LEDGER,
  ...TOLD,
  ...SCHEDULED,
  ...witnessed(
    'sent means committed before',
    'a command is carried out at most once',
    'applied sequences never fall',
    'allowed actions are what the API accepts',
    'what is accepted is covered',
  ),
};

/** After healing: nothing is on its way, nothing is owed, and hosts hold exactly what the store says. */
export const CONVERGED: Invariants = {
  ...NOTHING_IDLES,
  'nothing is on its way': ({ instances }) =>
    first(instances.values(), ({ id, status }) =>
      ['creating', 'starting', 'stopping', 'destroying'].includes(status) ? `${id} is ${status}` : undefined,
    ),

  'what is destroyed holds nothing': ({ instances, claims }) =>
    first(claims, ({ gpu_uuid, instance_id }) =>
      instances.get(instance_id)?.status === 'destroyed' ? `${gpu_uuid} is held by ${instance_id}` : undefined,
    ),

  'no command is open': ({ commands }) =>
    first(commands.values(), ({ kind, instance_id, state }) =>
      state === 'open' ? `the ${kind} of ${instance_id} is open` : undefined,
    ),

  'nothing is set apart': ({ quarantined }) =>
    first(quarantined, ({ instance_id }) => `${instance_id} is in quarantine`),

  'containers and instances match, with the same GPUs': (view) =>
    first(view.world.hosts, ({ machineId, docker }) => {
      const wrong = first(docker.containers.values(), ({ workload }) => mismatch(workload, view));
      return (
        wrong ??
        first(view.instances.values(), (instance) => {
          const needed = instance.machine_id === machineId && ['running', 'stopped'].includes(instance.status);
          // An older copy of the store brings back as stopped what was destroyed since.
          const { vanished, givenUp } = view.world.witness;
          const isGone = vanished.has(instance.id) || givenUp.has(instance.id);
          if (!needed || isGone || docker.containers.has(instance.id)) return undefined;
          return `${instance.id} is ${instance.status} and has no container`;
        })
      );
    }),
};

function mismatch(
  { instanceId, state, gpuUuids }: { instanceId: string; state: string; gpuUuids: readonly string[] },
  { instances, claims }: View,
): string | undefined {
  const instance = instances.get(instanceId);
  const status = instance?.status ?? 'unknown';
  const fits =
    (state === 'running' && status === 'running') ||
    (state === 'stopped' && (status === 'stopped' || status === 'error')) ||
    (state === 'created' && status === 'error');
  if (!fits) return `${instanceId} is ${state} on its host and ${status} in the store`;
  const held = claims.filter(({ instance_id }) => instance_id === instanceId).map(({ gpu_uuid }) => gpu_uuid);
  const holds = status === 'running' || (status === 'stopped' && instance?.gpus_released === 0);
  if (!holds || held.sort().join() === [...gpuUuids].sort().join()) return undefined;
  return `${instanceId} uses ${gpuUuids.join()} and holds ${held.join()}`;
}

function witnessed(...sights: readonly MachineView[]): Invariants {
  return Object.fromEntries(sights.map((sight) => [sight, ({ world }: View) => world.witness.wrongs.get(sight)]));
}

function isHeld(claim: Claim, claims: readonly Claim[]): boolean {
  return claims.some(
    ({ machine_id, gpu_uuid, instance_id }) =>
      machine_id === claim.machine_id && gpu_uuid === claim.gpu_uuid && instance_id === claim.instance_id,
  );
}

/** By an answer to a command of the instance, or by the end of its workload. */
function isConfirmedDown({ instance_id }: Claim, { commands, before, edges, world }: View): boolean {
  const answered = [...commands.values()].some(({ id, ...command }) => {
    const isNew = !ANSWERED.includes(before?.commands.get(id)?.state ?? 'open');
    return command.instance_id === instance_id && isNew && ANSWERED.includes(command.state);
  });
  const ended = edges.some((edge) => edge.instance_id === instance_id && edge.became === 'error');
  const caughtUp = world.witness.restored;
  return answered || ended || caughtUp || hasLeftGpus(instance_id, world);
}

/** Whether the host of a workload that it tries to remove has said that nothing of it is on its GPUs any more. */
function hasLeftGpus(instanceId: string, world: View['world']): boolean {
  const attempts = world.rows<{ message: string }>(
    "SELECT message FROM events WHERE instance_id = ? AND kind = 'destroy_attempt'",
    instanceId,
  );
  return attempts.some(({ message }) => message.includes('nothing of it is on its GPUs'));
}

const ANSWERED = ['done', 'refused', 'failed'];

/** The first invariant that does not hold, and how. */
export function judge(view: View, invariants: Invariants): string | undefined {
  for (const [name, holds] of Object.entries(invariants)) {
    const wrong = holds(view);
    if (wrong !== undefined) return `${name}: ${wrong}`;
  }
  return undefined;
}
