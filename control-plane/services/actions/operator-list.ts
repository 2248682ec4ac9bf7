import type { CommandKind } from '../../domain/command.js';
import type { InstanceErrorCode } from '../../domain/instance-codes.js';
import { WAIT_WORDS, waitReason, type WaitReason } from '../../domain/wait.js';
import type { Row } from '../../store/schema.js';
import { query, sql } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import { REMOVED_EMAILS } from '../accounts/users.js';
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
  organization_id?: string;
  machine_id?: string;
  status?: Row<'instances'>['status'];
  error_code?: InstanceErrorCode;
  /** Whether the instance has an open command. */
  waiting?: boolean;
}

/** Lists, for an operator, the instances of all organizations that are not destroyed, newest first. */
export function listAllInstances(
  platform: Platform,
  { organization_id, machine_id, status, error_code, waiting, ...request }: PageRequest & InstanceFilter,
): Page<OperatedInstance> {
  let all = liveInstances();
  if (organization_id !== undefined) all = all.where('instances.organization_id', '=', organization_id);
  if (machine_id !== undefined) all = all.where('instances.machine_id', '=', machine_id);
  if (status !== undefined) all = all.where('instances.status', '=', status);
  if (error_code !== undefined) all = all.where('instances.error_code', '=', error_code);
  if (waiting !== undefined) all = all.where('commands.id', waiting ? 'is not' : 'is', null);
  return platform.store.transact((tx) => {
    const { items, ...rest } = pageOf(tx, all, request, {
      by: { 'instances.created_at': 'desc', 'instances.id': 'asc' },
      keyOf: ({ created_at, id }) => [created_at, id],
    });
    return { ...rest, items: items.map((row) => describe(platform, tx, row)) };
  });
}

function liveInstances() {
  return query
    .selectFrom('instances')
    .innerJoin('organizations', 'organizations.id', 'instances.organization_id')
    .innerJoin('machines', 'machines.id', 'instances.machine_id')
    .leftJoin('commands', (join) =>
      join
        .onRef('commands.instance_id', '=', 'instances.id')
        .onRef('commands.machine_id', '=', 'instances.machine_id')
        .on('commands.state', '=', sql.lit('open')),
    )
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
    .select(['commands.kind', 'commands.created_at as since', 'commands.accepted_at'])
    .where('instances.status', '<>', sql.lit('destroyed'));
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
