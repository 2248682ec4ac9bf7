import type { InstanceStatus } from '../../control-plane/domain/instances/instance-state.js';
import { DAYS_THAT_DIFFER, INSTANCES_THAT_DIFFER } from '../harness/charge-days.js';
import { noteSince } from './machine-view.js';
import type { World } from './world.js';

export interface InstanceRow {
  id: string;
  organization_id: string;
  machine_id: string;
  status: InstanceStatus;
  disk_gb: number;
  gpus_released: 0 | 1;
  error_code: string | null;
  sequence: number;
  started_at: number | null;
  destroyed_at: number | null;
  spend_micro: number;
  gpu_settled_ms: number;
  workload_encrypted: Buffer | null;
  access_token_encrypted: Buffer | null;
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

export interface OrganizationRow {
  id: string;
  balance_micro: number;
}

export interface TransactionRow {
  id: string;
  organization_id: string;
  kind: string;
  amount_micro: number;
  instance_id: string | null;
  meter: string | null;
  hour: number | null;
  created_at: number;
}

/** What all days of an organization have cost. */
export interface DaysRow {
  id: string;
  micro: number;
}

export interface IntervalRow {
  instance_id: string;
  meter: string;
  opened_at: number;
  closed_at: number | null;
}

export interface ScheduleRow {
  /** Of the instance. */
  id: string;
  time_zone: string;
  entries: string;
  next_at: number;
  start_command: string | null;
  /** Whether its host has not spoken since a restore. */
  needs_resync: 0 | 1;
}

export interface EventRow {
  stream: string;
  number: number;
  /** The number that follows from those before. */
  due: number;
  type: string;
  instance_id: string | null;
  data: string;
}

/** What is looked at after a step, and what was seen before it. */
export interface View {
  world: World;
  instances: ReadonlyMap<string, InstanceRow>;
  claims: readonly Claim[];
  /** GPUs that workloads in quarantine hold. */
  quarantined: readonly Claim[];
  commands: ReadonlyMap<string, CommandRow>;
  organizations: ReadonlyMap<string, OrganizationRow>;
  transactions: ReadonlyMap<string, TransactionRow>;
  intervals: readonly IntervalRow[];
  days: ReadonlyMap<string, DaysRow>;
  /** Sums by day of groups that are not those of their organization or instance. */
  wrongDays: readonly object[];
  schedules: ReadonlyMap<string, ScheduleRow>;
  /** Changes of a status since the last look. */
  edges: readonly Edge[];
  /** New since the last look, by stream and number. */
  events: readonly EventRow[];
  /** Absent where the store was replaced since. */
  before: Pick<View, 'instances' | 'claims' | 'commands' | 'transactions' | 'schedules'> | undefined;
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
    quarantined: world.rows<Claim>(
      'SELECT machine_id, gpu_uuid, instance_id FROM quarantine_gpus JOIN quarantine ON quarantine.id = quarantine_id',
    ),
    commands: byId(world.rows<CommandRow>('SELECT id, instance_id, kind, state FROM commands')),
    organizations: byId(world.rows<OrganizationRow>('SELECT id, balance_micro FROM organizations')),
    transactions: byId(world.rows<TransactionRow>('SELECT * FROM transactions')),
    intervals: world.rows<IntervalRow>('SELECT instance_id, meter, opened_at, closed_at FROM meter_intervals'),
    days: byId(
      world.rows<DaysRow>(
        'SELECT organization_id AS id, sum(gpu_micro + disk_micro) AS micro FROM organization_days GROUP BY organization_id',
      ),
    ),
    wrongDays: [...world.rows<object>(DAYS_THAT_DIFFER), ...world.rows<object>(INSTANCES_THAT_DIFFER)],
    schedules: byId(world.rows<ScheduleRow>(SCHEDULES)),
    edges,
    events: newEvents(world),
    before: before && !replaced ? seen(before) : undefined,
  };
  remember(view);
  return view;
}

const SCHEDULES = `
  SELECT instance_id AS id, time_zone, entries, next_at, start_command, needs_resync FROM instance_schedules
  JOIN instances ON instances.id = instance_id JOIN machines ON machines.id = machine_id`;

function newEvents(world: World): EventRow[] {
  const streams = world.rows<{ stream: string }>("SELECT id AS stream FROM organizations UNION ALL SELECT 'operators'");
  return streams.flatMap(({ stream }) => {
    const since = world.eventsSeen.get(stream) ?? 0;
    const newer = 'SELECT * FROM events WHERE stream = ? AND number > ? ORDER BY number';
    const rows = world.rows<Omit<EventRow, 'due'>>(newer, stream, since);
    world.eventsSeen.set(stream, rows.at(-1)?.number ?? since);
    return rows.map((row, index) => ({ ...row, due: since + 1 + index }));
  });
}

function seen({ instances, claims, commands, transactions, schedules }: View): View['before'] {
  return { instances, claims, commands, transactions, schedules };
}

function byId<Row extends { id: string }>(rows: readonly Row[]): ReadonlyMap<string, Row> {
  return new Map(rows.map((row) => [row.id, row]));
}

/** What stays true of an instance, whatever copy of the store is restored. */
function remember({ world: { witness, timeline }, instances, organizations, edges, before }: View): void {
  const { stoppingSince, runningSince, downSince, started, givenUp } = witness;
  for (const since of [stoppingSince, runningSince, downSince]) {
    for (const id of since.keys()) if (before === undefined || !instances.has(id)) since.delete(id);
  }
  // A stop that has timed out, and one that was asked for since, within one step.
  for (const { instance_id, became } of edges) if (became === 'stopping') stoppingSince.delete(instance_id);
  for (const { id, status, started_at } of instances.values()) {
    if (started_at !== null) started.add(id);
    if (status === 'destroying' || status === 'destroyed') givenUp.add(id);
    noteSince(stoppingSince, id, status === 'stopping', timeline.now);
    noteSince(runningSince, id, status === 'running', timeline.now);
    noteSince(downSince, id, status === 'stopped' || status === 'error', timeline.now);
  }
  for (const { id, balance_micro } of organizations.values()) witness.seeBalance(id, balance_micro, timeline.now);
}

/** Whether the host of an instance is still to stop it: also if the stop has timed out. */
export function isBeingStopped({ commands }: View, instanceId: string): boolean {
  const open = [...commands.values()].filter(
    ({ instance_id, state }) => instance_id === instanceId && state === 'open',
  );
  return open.some(({ kind }) => kind === 'stop' || kind === 'release');
}

/** What is wrong with the first item with which something is. */
export function first<T>(items: Iterable<T>, judge: (item: T) => string | undefined): string | undefined {
  for (const item of items) {
    const wrong = judge(item);
    if (wrong !== undefined) return wrong;
  }
  return undefined;
}

/** Says what is wrong, or nothing. */
export type Invariant = (view: View) => string | undefined;
export type Invariants = Readonly<Record<string, Invariant>>;
