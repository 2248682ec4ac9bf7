import type { InstanceStatus } from '../../control-plane/domain/instance-state.js';
import { TICK_MS } from './control-plane.js';
import { GRACE_MS } from '../../control-plane/services/instances/time-outs.js';
import type { World } from './world.js';

interface InstanceRow {
  id: string;
  machine_id: string;
  status: InstanceStatus;
  disk_gb: number;
  gpus_released: 0 | 1;
  sequence: number;
  started_at: number | null;
  status_changed_at: number;
  workload_sealed: Buffer | null;
  access_token_sealed: Buffer | null;
}

interface Claim {
  machine_id: string;
  gpu_uuid: string;
  instance_id: string;
}

/** What is looked at after a step, and what was seen before it. */
export interface View {
  instances: Map<string, InstanceRow>;
  before: ReadonlyMap<string, InstanceRow>;
  claims: Claim[];
  /** The kind of the open command of each instance that has one. */
  open: ReadonlyMap<string, string>;
  world: World;
}

/** Each says what is wrong, or nothing. */
export type Invariant = (view: View) => string | undefined;

const HOLDS_GPUS: readonly InstanceStatus[] = ['creating', 'starting', 'running', 'stopping'];
const STOP_LIMIT_MS = 30 * 60_000;

export const INVARIANTS: Readonly<Record<string, Invariant>> = {
  'destroyed is final, with nothing secret left': ({ instances, before }) =>
    first([...instances.values()], ({ id, status, workload_sealed, access_token_sealed }) => {
      if (before.get(id)?.status === 'destroyed' && status !== 'destroyed') return `${id} is ${status} again`;
      if (status === 'destroyed' && (workload_sealed ?? access_token_sealed)) return `${id} keeps a secret`;
      return undefined;
    }),

  'error is left by destroy alone': ({ instances, before }) =>
    first([...instances.values()], ({ id, status }) =>
      before.get(id)?.status === 'error' && !['error', 'destroying', 'destroyed'].includes(status)
        ? `${id} went from error to ${status}`
        : undefined,
    ),

  'what has started was started once': ({ instances, before }) =>
    first([...instances.values()], ({ id, started_at }) => {
      const was = before.get(id)?.started_at ?? null;
      return was !== null && was !== started_at ? `${id} was started at ${was}, now at ${started_at}` : undefined;
    }),

  'sequences never fall': ({ instances, before }) =>
    first([...instances.values()], ({ id, sequence }) =>
      (before.get(id)?.sequence ?? 0) > sequence ? `${id} fell to ${sequence}` : undefined,
    ),

  'what may run holds its GPUs': ({ instances, claims }) =>
    first([...instances.values()], ({ id, status }) =>
      HOLDS_GPUS.includes(status) && !claims.some((claim) => claim.instance_id === id)
        ? `${id} is ${status} and holds no GPU`
        : undefined,
    ),

  // A start that was given up leaves its claims to the command that undoes it.
  'released means released': ({ instances, claims, open }) =>
    first([...instances.values()], ({ id, status, gpus_released }) => {
      const holds = claims.some(({ instance_id }) => instance_id === id) && open.get(id) !== 'release';
      return status === 'stopped' && gpus_released === 1 && holds ? `${id} is released and holds a GPU` : undefined;
    }),

  'a GPU that a host uses is claimed by who uses it': ({ world, claims }) =>
    first(world.hosts, ({ machineId, docker }) =>
      first(docker.running(), ({ instanceId, gpuUuids }) =>
        first(gpuUuids, (uuid) => {
          const claim = claims.find(({ machine_id, gpu_uuid }) => machine_id === machineId && gpu_uuid === uuid);
          if (claim?.instance_id === instanceId) return undefined;
          return `${uuid} is used by ${instanceId} and claimed by ${claim?.instance_id ?? 'nobody'}`;
        }),
      ),
    ),

  'no GPU is in two running containers': ({ world }) => first(world.hosts, ({ docker }) => docker.sharedGpus[0]),

  'a container that has been up is never made anew': ({ world, before }) =>
    first(world.hosts, ({ docker }) =>
      first(docker.remade, ([id, at]) => {
        const startedAt = before.get(id)?.started_at ?? null;
        return startedAt !== null && at >= world.lookedAt ? `${id} was made anew` : undefined;
      }),
    ),

  'no disk is removed that nobody gave up': ({ world, instances, before }) =>
    first(world.hosts, ({ docker }) =>
      first(docker.removed, ([id, at]) => {
        const status = instances.get(id)?.status;
        const used = (before.get(id)?.started_at ?? null) !== null && at >= world.lookedAt;
        if (!used || status === 'destroying' || status === 'destroyed') return undefined;
        return `${id} is ${status} and its container was removed`;
      }),
    ),

  'committed disk is within the machine’s': ({ instances, world }) =>
    first(world.hosts, ({ machineId }) => {
      const live = [...instances.values()].filter(
        ({ machine_id, status }) => machine_id === machineId && status !== 'destroyed',
      );
      const committed = live.reduce((sum, { disk_gb }) => sum + disk_gb, 0);
      return committed > 500 ? `${committed} GB are committed on ${machineId}` : undefined;
    }),

  'no stop hangs for longer than half an hour': ({ instances, world }) =>
    first([...instances.values()], ({ id, status, status_changed_at }) => {
      const since = Math.max(world.upSince + GRACE_MS, world.jumpedAt) + 2 * TICK_MS;
      if (status !== 'stopping' || !world.controlPlane.alive || world.timeline.now < since) return undefined;
      const age = world.controlPlane.platform.clock.now() - status_changed_at;
      return age > STOP_LIMIT_MS + 2 * TICK_MS ? `${id} is stopping for ${Math.round(age / 1000)} s` : undefined;
    }),
};

/** After healing: nothing is on its way, nothing is owed, and hosts hold exactly what the store says. */
export const CONVERGED: Readonly<Record<string, Invariant>> = {
  'nothing is on its way': ({ instances }) =>
    first([...instances.values()], ({ id, status }) =>
      ['creating', 'starting', 'stopping', 'destroying'].includes(status) ? `${id} is ${status}` : undefined,
    ),

  'what is destroyed holds nothing': ({ instances, claims }) =>
    first(claims, ({ gpu_uuid, instance_id }) =>
      instances.get(instance_id)?.status === 'destroyed' ? `${gpu_uuid} is held by ${instance_id}` : undefined,
    ),

  'no command is open': ({ open }) => first(open, ([id, kind]) => `the ${kind} of ${id} is open`),

  'containers and instances match': ({ instances, world }) =>
    first(world.hosts, ({ machineId, docker }) => {
      const extra = first([...docker.containers.values()], ({ workload: { instanceId, state } }) => {
        const status = instances.get(instanceId)?.status ?? 'unknown';
        const fits =
          (state === 'running' && status === 'running') ||
          (state === 'stopped' && (status === 'stopped' || status === 'error')) ||
          (state === 'created' && status === 'error');
        return fits ? undefined : `${instanceId} is ${state} on its host and ${status} in the store`;
      });
      if (extra) return extra;
      const needed = [...instances.values()].filter(
        ({ machine_id, status }) => machine_id === machineId && (status === 'running' || status === 'stopped'),
      );
      return first(needed, ({ id, status }) =>
        docker.containers.has(id) || world.vanished.has(id) ? undefined : `${id} is ${status} and has no container`,
      );
    }),
};

function first<T>(items: Iterable<T>, judge: (item: T) => string | undefined): string | undefined {
  for (const item of items) {
    const wrong = judge(item);
    if (wrong !== undefined) return wrong;
  }
  return undefined;
}

export function look(world: World, before: ReadonlyMap<string, InstanceRow>): View {
  const instances = new Map(world.rows<InstanceRow>('SELECT * FROM instances').map((row) => [row.id, row]));
  const open = world.rows<{ instance_id: string; kind: string }>(
    "SELECT instance_id, kind FROM commands WHERE state = 'open'",
  );
  const claims = world.rows<Claim>('SELECT * FROM gpu_claims');
  return { instances, before, claims, open: new Map(open.map(({ instance_id, kind }) => [instance_id, kind])), world };
}

/** The first invariant that does not hold, and how. */
export function judge(view: View, invariants: Readonly<Record<string, Invariant>>): string | undefined {
  for (const [name, holds] of Object.entries(invariants)) {
    const wrong = holds(view);
    if (wrong !== undefined) return `${name}: ${wrong}`;
  }
  return undefined;
}
