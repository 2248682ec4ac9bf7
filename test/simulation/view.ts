import type { InstanceStatus } from '../../control-plane/domain/instance-state.js';
import type { World } from './world.js';

export interface InstanceRow {
  id: string;
  machine_id: string;
  status: InstanceStatus;
  disk_gb: number;
  gpus_released: 0 | 1;
  error_code: string | null;
  sequence: number;
  started_at: number | null;
  workload_sealed: Buffer | null;
  access_token_sealed: Buffer | null;
}

export interface Claim {
  machine_id: string;
  gpu_uuid: string;
  instance_id: string;
}

export interface CommandRow {
  id: string;
  instance_id: string;
  kind: string;
  state: string;
}

export interface Edge {
  id: number;
  instance_id: string;
  was: InstanceStatus;
  became: InstanceStatus;
}

/** What is looked at after a step, and what was seen before it. */
export interface View {
  world: World;
  instances: ReadonlyMap<string, InstanceRow>;
  claims: readonly Claim[];
  /** GPUs that workloads in quarantine hold. */
  setApart: readonly Claim[];
  commands: ReadonlyMap<string, CommandRow>;
  /** Changes of a status since the last look. */
  edges: readonly Edge[];
  /** Absent where the store was replaced since. */
  before: Pick<View, 'instances' | 'claims' | 'commands'> | undefined;
}

export function look(world: World, before?: View): View {
  const instances = byId(world.rows<InstanceRow>('SELECT * FROM instances'));
  const edges = world.rows<Edge>('SELECT * FROM sim_edges WHERE id > ? ORDER BY id', world.edgesSeen);
  world.edgesSeen = edges.at(-1)?.id ?? world.edgesSeen;
  const replaced = world.restoredAt >= world.lookedAt;
  const view: View = {
    world,
    instances,
    claims: world.rows<Claim>('SELECT * FROM gpu_claims'),
    setApart: world.rows<Claim>(
      'SELECT machine_id, gpu_uuid, instance_id FROM quarantine_gpus JOIN quarantine ON quarantine.id = quarantine_id',
    ),
    commands: byId(world.rows<CommandRow>('SELECT id, instance_id, kind, state FROM commands')),
    edges,
    before: before && !replaced ? seen(before) : undefined,
  };
  remember(view);
  return view;
}

function seen({ instances, claims, commands }: View): View['before'] {
  return { instances, claims, commands };
}

function byId<Row extends { id: string }>(rows: readonly Row[]): ReadonlyMap<string, Row> {
  return new Map(rows.map((row) => [row.id, row]));
}

/** What stays true of an instance, whatever copy of the store is restored. */
function remember({ world: { witness, timeline }, instances, before }: View): void {
  for (const id of witness.stoppingSince.keys()) {
    if (before === undefined || !instances.has(id)) witness.stoppingSince.delete(id);
  }
  for (const { id, status, started_at } of instances.values()) {
    if (started_at !== null) witness.started.add(id);
    if (status === 'destroying' || status === 'destroyed') witness.givenUp.add(id);
    if (status !== 'stopping') witness.stoppingSince.delete(id);
    else if (!witness.stoppingSince.has(id)) witness.stoppingSince.set(id, timeline.now);
  }
}
