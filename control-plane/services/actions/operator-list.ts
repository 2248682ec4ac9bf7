import type { CommandKind } from '../../domain/instances/command.js';
import type { InstanceErrorCode } from '../../domain/instances/instance-codes.js';
import { WAIT_WORDS, waitReason, type WaitReason } from '../../domain/instances/wait.js';
import type { Row } from '../../store/schema.js';
import { query, sql } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import { REMOVED_EMAILS } from '../organizations/removed-users.js';
import { pageOf, type Page, type PageRequest } from '../system/pages.js';
import type { Platform } from '../system/platform.js';

/** A renter's instance as operators see it. */
export type OperatedInstance = Pick<
  Row<'instances'>,
  | 'id'
  | 'organization_id'
  | 'machine_id'
  | 'deployed_by'
  | 'label'
  | 'price_per_hour_micro'
  | 'status'
  | 'error_code'
  | 'num_gpus'
  | 'disk_gb'
  | 'created_at'
  | 'status_changed_at'
> & {
  organization_name: string;
  machine_name: string;
  deployed_by_email: string | null;
  waits_for: Wait | null;
};

/** The open command of an instance, and why its host has not finished it. */
export interface Wait {
  command: CommandKind;
  since: number;
  reason: WaitReason;
  message: string;
}

/** The filter of an operator's list of instances. Absent fields match all. */
export interface InstanceFilter {
  id?: string;
  organization_id?: string;
  machine_id?: string;
  status?: Row<'instances'>['status'];
  error_code?: InstanceErrorCode;
  /** Whether the instance has an open command. */
  waiting?: boolean;
}

/** Lists, for an operator, the instances of all organizations that are not destroyed, newest first; or the one with an id, in any status. */
export function listAllInstances(platform: Platform, request: PageRequest & InstanceFilter): Page<OperatedInstance> {
  const { rows, order } = operatedInstances(request);
  return platform.store.transact((tx) => {
    const { items, ...rest } = pageOf(tx, rows, request, order);
    return { ...rest, items: items.map((row) => describe(platform, tx, row)) };
  });
}

/** The filters that have an index in the order of the list; those that match the fewest instances first. */
const INDEXED = ['id', 'machine_id', 'organization_id', 'error_code', 'waiting', 'status'] as const;
const COLUMNS = ['id', 'machine_id', 'organization_id', 'error_code', 'status'] as const;

const keyOf = ({ created_at, id }: Pick<OperatedInstance, 'created_at' | 'id'>) => [created_at, id] as const;
const BY_AGE = { by: { 'instances.created_at': 'desc', 'instances.id': 'asc' }, keyOf } as const;
/** The same order, by the columns of the open command that have the same values. */
const BY_AGE_IN_COMMANDS = {
  by: { 'commands.instance_created_at': 'desc', 'commands.instance_id': 'asc' },
  keyOf,
} as const;

/** Returns the query of the instances that match, and its order. It reads the index of one filter, and looks at the others row by row. */
export function operatedInstances(filter: InstanceFilter) {
  const index = INDEXED.find((name) => filter[name] !== undefined && filter[name] !== false);
  let rows = filter.id === undefined ? liveInstances() : allInstances();
  for (const name of COLUMNS) {
    const column = sql.ref<string>(`instances.${name}`);
    // SQLite searches no index for an expression.
    const compared = name === index ? column : sql<string>`+${column}`;
    if (filter[name] !== undefined) rows = rows.where(compared, '=', filter[name]);
  }
  if (index === 'waiting') return { rows: awaited(rows), order: BY_AGE_IN_COMMANDS };
  if (filter.waiting !== undefined) rows = rows.where('commands.id', filter.waiting ? 'is not' : 'is', null);
  return { rows, order: BY_AGE };
}

/** Leaves those with an open command; written so that SQLite begins with the index of open commands. */
function awaited(rows: ReturnType<typeof liveInstances>) {
  return rows.where('commands.state', '=', sql.lit('open')).where('commands.instance_created_at', 'is not', null);
}

function liveInstances() {
  return allInstances().where('instances.status', '<>', sql.lit('destroyed'));
}

/** Joins the command before the rest, so that instances that do not match cost one search each. */
function allInstances() {
  return query
    .selectFrom('instances')
    .leftJoin('commands', (join) =>
      join
        .onRef('commands.instance_id', '=', 'instances.id')
        .onRef('commands.machine_id', '=', 'instances.machine_id')
        .on('commands.state', '=', sql.lit('open')),
    )
    .innerJoin('organizations', 'organizations.id', 'instances.organization_id')
    .innerJoin('machines', 'machines.id', 'instances.machine_id')
    .leftJoin('api_keys', 'api_keys.id', 'instances.api_key_id')
    .leftJoin('users', (join) =>
      join
        .on(sql`users.id`, '=', sql`coalesce(api_keys.creator_id, (SELECT id FROM users WHERE email = deployed_by))`)
        .on('users.email', 'not like', REMOVED_EMAILS),
    )
    .select(['instances.id', 'instances.organization_id', 'instances.machine_id', 'deployed_by', 'instances.status'])
    .select([
      'label',
      'instances.price_per_hour_micro',
      'error_code',
      'num_gpus',
      'instances.disk_gb',
      'instances.created_at',
      'status_changed_at',
    ])
    .select(['organizations.name as organization_name', 'machines.name as machine_name'])
    .select('users.email as deployed_by_email')
    .select(['commands.kind', 'commands.created_at as since', 'commands.accepted_at']);
}

type Found = Omit<OperatedInstance, 'waits_for'> & {
  kind: CommandKind | null;
  since: number | null;
  accepted_at: number | null;
};

function describe(
  { connections }: Platform,
  tx: Tx,
  { kind, since, accepted_at, ...instance }: Found,
): OperatedInstance {
  if (kind === null || since === null) return { ...instance, waits_for: null };
  const reason = waitReason(connections.troubleOf(instance.machine_id), accepted_at !== null);
  const said = reason === 'under_way' ? lastEventSince(tx, instance.id, since) : undefined;
  return { ...instance, waits_for: { command: kind, since, reason, message: said ?? WAIT_WORDS[reason] } };
}

/** Returns the latest event since the command, such as the progress of an image pull. */
function lastEventSince(tx: Tx, instanceId: string, since: number): string | undefined {
  const events = query.selectFrom('events').select(['message', 'at']).where('instance_id', '=', instanceId);
  const last = tx.get(events.orderBy('number', 'desc').limit(1));
  return last && last.at >= since ? (last.message ?? undefined) : undefined;
}
