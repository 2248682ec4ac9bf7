import { SetupError } from '../../../shared/coded-error.js';
import { query, sql } from '../../store/sql.js';
import { readDatabase, type Reader } from '../../store/read-only.js';

export const INSPECTED = ['instance', 'machine', 'command', 'organization'] as const;
export type InspectedKind = (typeof INSPECTED)[number];

type Fields = Record<string, string | number | null>;

/** The rows of one object: its own fields first, then related rows, newest first. Times are ISO 8601. */
export type Inspection = Record<string, Fields | Fields[] | null>;

/** Most rows of each list. */
const SHOWN = 20;
/** Codes whose messages can quote the output of a workload. Only its renter may read that. */
const QUOTE_OUTPUT = ['workload_failed', 'workload_completed'];
const NOT_SHOWN = '(not shown: it can quote output of the workload)';

/**
 * Reads the rows of an instance, machine, command or organization. It never returns a secret, a hash of one, or output of a
 * workload. Throws SetupError for an unknown kind or id, and if the database cannot be read.
 */
export function inspect(file: string, kind: string, id: string): Inspection {
  if (!isInspected(kind)) throw new SetupError(`"${kind}" cannot be inspected; use one of ${INSPECTED.join(', ')}`);
  return readDatabase(file, (reader) => {
    const found = READ[kind](reader, id);
    if (found) return mapFields(found, withTimes);
    const other = INSPECTED.find((each) => READ[each](reader, id));
    throw new SetupError(`${file} has no ${kind} "${id}"${other ? `: this is the id of a ${other}` : ''}`);
  });
}

function isInspected(kind: string): kind is InspectedKind {
  return (INSPECTED as readonly string[]).includes(kind);
}

const READ: Record<InspectedKind, (reader: Reader, id: string) => Inspection | undefined> = {
  instance: readInstance,
  machine: readMachine,
  command: readCommand,
  organization: readOrganization,
};

function readInstance(reader: Reader, id: string): Inspection | undefined {
  const instance = reader.get(
    query
      .selectFrom('instances')
      .select([
        'id',
        'status',
        'status_changed_at',
        'label',
        'organization_id',
        'machine_id',
        'offer_id',
        'template_id',
      ])
      .select(['num_gpus', 'disk_gb', 'price_per_hour_micro', 'storage_price_per_gb_hour_micro', 'spend_micro'])
      .select([
        'ssh_host',
        'ssh_port',
        'ssh_ready_at',
        'error_code',
        'error_message',
        'deployed_by',
        'api_key_id',
        'run_key_id',
      ])
      .select(['gpus_released', 'gpu_release', 'gpu_release_requested_at', 'release_gpus_at', 'access_replacement'])
      .select(['sequence', 'run_id', 'charge_from', 'charge_to', 'run_not_before', 'gpu_settled_ms', 'disk_settled_ms'])
      .select(['created_at', 'started_at', 'progress_at', 'destroyed_at'])
      .select(['stop_at', 'max_charge_micro', 'max_charge_from', 'on_limit', 'charge_told_percent'])
      .select(['idle_stop_minutes', 'idle_from', 'idle_to', 'idle_stops_at'])
      .where('id', '=', id),
  );
  if (!instance) return undefined;
  return {
    instance: quotesOutput(instance.error_code) ? { ...instance, error_message: NOT_SHOWN } : instance,
    machine: hostOf(reader, instance.machine_id),
    organization: accountOf(reader, instance.organization_id),
    schedule: scheduleOf(reader, id),
    spend_caps: capsOf(reader, instance.organization_id),
    earlier_limits: earlierLimits(reader, instance.organization_id, id),
    gpu_claims: claims(reader, 'instance_id', id),
    open_command: reader.get(commands().where('instance_id', '=', id).where('state', '=', sql.lit('open'))) ?? null,
    commands: reader.all(
      commands()
        .where('machine_id', '=', instance.machine_id)
        .where('instance_id', '=', id)
        .orderBy('sequence', 'desc')
        .limit(SHOWN),
    ),
    events: reader
      .all(
        query
          .selectFrom('events')
          .select(['at', 'kind', 'message'])
          .where('instance_id', '=', id)
          .orderBy('number', 'desc')
          .limit(SHOWN),
      )
      .map((event) => (quotesOutput(event.kind) ? { ...event, message: NOT_SHOWN } : event)),
    meter_intervals: meterIntervals(reader, id),
  };
}

function scheduleOf(reader: Reader, instanceId: string): Fields | null {
  const schedule = query
    .selectFrom('instance_schedules')
    .select(['time_zone', 'entries', 'next_at', 'look_at', 'start_command', 'key_id']);
  return reader.get(schedule.where('instance_id', '=', instanceId)) ?? null;
}

/** Returns the caps of an organization and of its API keys. */
function capsOf(reader: Reader, organizationId: string): Fields[] {
  const caps = query.selectFrom('spend_caps').select(['api_key_id', 'kind', 'amount_micro', 'from_at', 'set_at']);
  return reader.all(
    caps.where('organization_id', '=', organizationId).orderBy('owner_id').orderBy('kind').limit(SHOWN),
  );
}

/** Returns limits and caps that were changed, for time before that is not charged yet. */
function earlierLimits(reader: Reader, organizationId: string, limitedId: string): Fields[] {
  const limits = query
    .selectFrom('earlier_limits')
    .select(['kind', 'limit_micro', 'from_at', 'until_at', 'spent_micro'])
    .where('organization_id', '=', organizationId);
  return reader.all(limits.where('limited_id', '=', limitedId).orderBy('id', 'desc').limit(SHOWN));
}

const quotesOutput = (code: string | null) => code !== null && QUOTE_OUTPUT.includes(code);

function meterIntervals(reader: Reader, instanceId: string): Fields[] {
  return reader.all(
    query
      .selectFrom('meter_intervals')
      .select(['id', 'meter', 'opened_at', 'closed_at', 'attested_to', 'settled_to'])
      .select(['run_id', 'run_began_at', 'run_not_before', 'capped_key_id'])
      .select(['written_off_ms', 'written_off_micro', 'after_stop', 'credited_ms', 'credited_written_off_micro'])
      .where('instance_id', '=', instanceId)
      .orderBy('id', 'desc')
      .limit(SHOWN),
  );
}

function commands() {
  return query
    .selectFrom('commands')
    .select(['id', 'kind', 'state', 'sequence', 'instance_id', 'machine_id', 'created_at', 'attempts', 'next_send_at'])
    .select(['accepted_at', 'finished_at', 'request_id', 'code', 'message']);
}

function claims(reader: Reader, column: 'instance_id' | 'machine_id', id: string): Fields[] {
  return reader.all(
    query
      .selectFrom('gpu_claims')
      .innerJoin('gpus', (join) =>
        join.onRef('gpus.machine_id', '=', 'gpu_claims.machine_id').onRef('gpus.uuid', '=', 'gpu_claims.gpu_uuid'),
      )
      .select([
        'gpu_claims.gpu_uuid',
        'gpus.model',
        'gpus.healthy',
        'gpus.present',
        'gpu_claims.instance_id',
        'claimed_at',
      ])
      .where(`gpu_claims.${column}`, '=', id)
      .orderBy('gpus.position'),
  );
}

function hostOf(reader: Reader, id: string): Fields | null {
  return (
    reader.get(
      query
        .selectFrom('machines')
        .select(['id', 'name', 'region', 'agent_version', 'last_seen_at', 'cordoned_at', 'lost_at', 'removed_at'])
        .select(['maintenance_starts_at', 'maintenance_ends_at', 'needs_resync'])
        .where('id', '=', id),
    ) ?? null
  );
}

function accountOf(reader: Reader, id: string): Fields | null {
  return (
    reader.get(
      query
        .selectFrom('organizations')
        .select(['id', 'name', 'balance_micro', 'payments_frozen_at', 'exhausted_since', 'settle_at', 'created_at'])
        .where('id', '=', id),
    ) ?? null
  );
}

function readMachine(reader: Reader, id: string): Inspection | undefined {
  const machine = reader.get(
    query
      .selectFrom('machines')
      .select(['id', 'name', 'region', 'public_address', 'arch', 'cpu_model', 'cpu_cores', 'memory_mb', 'disk_gb'])
      .select(['disk_quota', 'quota_waived_at', 'driver_version', 'cuda_version', 'vm_capable', 'agent_version'])
      .select(['gpu_release_supported', 'access_replaceable', 'boot_id', 'enrolled_at', 'last_seen_at', 'needs_resync'])
      .select(['cordoned_at', 'lost_at', 'removed_at', 'maintenance_starts_at', 'maintenance_ends_at'])
      .where('id', '=', id),
  );
  if (!machine) return undefined;
  const gpus = query
    .selectFrom('gpus')
    .select(['uuid', 'model', 'memory_mb', 'healthy', 'reason', 'present', 'owned', 'seen_at']);
  const offers = query
    .selectFrom('offers')
    .select(['id', 'num_gpus', 'price_per_hour_micro', 'storage_price_per_gb_hour_micro', 'created_at'])
    .where('withdrawn_at', 'is', null);
  const credentials = query
    .selectFrom('host_credentials')
    .select(['generation', 'issued_at', 'expires_at', 'revoked_at']);
  const quarantine = query.selectFrom('quarantine').select(['id', 'instance_id', 'found_at', 'removal_requested_at']);
  const open = commands().where('state', '=', sql.lit('open')).orderBy('next_send_at', 'desc');
  return {
    machine,
    gpus: reader.all(gpus.where('machine_id', '=', id).orderBy('position')),
    gpu_claims: claims(reader, 'machine_id', id),
    offers: reader.all(offers.where('machine_id', '=', id).orderBy('created_at', 'desc').limit(SHOWN)),
    instances: reader.all(instances().where('machine_id', '=', id).orderBy('created_at', 'desc').limit(SHOWN)),
    open_commands: reader.all(open.where('machine_id', '=', id).limit(SHOWN)),
    quarantine: reader.all(quarantine.where('machine_id', '=', id).orderBy('found_at', 'desc').limit(SHOWN)),
    credentials: reader.all(credentials.where('machine_id', '=', id).orderBy('generation', 'desc').limit(SHOWN)),
  };
}

/** Selects instances that are not destroyed. */
function instances() {
  return query
    .selectFrom('instances')
    .select(['id', 'status', 'status_changed_at', 'organization_id', 'machine_id', 'num_gpus', 'disk_gb', 'error_code'])
    .select(['spend_micro', 'created_at'])
    .where('status', '<>', sql.lit('destroyed'));
}

function readCommand(reader: Reader, id: string): Inspection | undefined {
  const command = reader.get(commands().where('id', '=', id));
  if (!command) return undefined;
  const instance = query
    .selectFrom('instances')
    .select(['id', 'status', 'status_changed_at', 'organization_id', 'sequence', 'progress_at', 'error_code'])
    .where('id', '=', command.instance_id);
  return { command, instance: reader.get(instance) ?? null, machine: hostOf(reader, command.machine_id) };
}

function readOrganization(reader: Reader, id: string): Inspection | undefined {
  const organization = accountOf(reader, id);
  if (!organization) return undefined;
  const members = query
    .selectFrom('memberships')
    .innerJoin('users', 'users.id', 'memberships.user_id')
    .select(['user_id', 'email', 'role', 'joined_at']);
  const keys = query
    .selectFrom('api_keys')
    .select(['id', 'name', 'kind', 'creator_id', 'created_at', 'last_used_at', 'revoked_at'])
    .select(['read_only', 'allowed_addresses', 'expires_at']);
  const disputes = query
    .selectFrom('disputes')
    .select(['id', 'payment_id', 'state', 'amount_micro', 'opened_at', 'decided_at']);
  const entries = query
    .selectFrom('transactions')
    .select(['id', 'created_at', 'kind', 'amount_micro', 'instance_id', 'meter', 'hour', 'reason', 'author_id']);
  return {
    organization,
    members: reader.all(members.where('organization_id', '=', id).orderBy('joined_at').limit(SHOWN)),
    instances: reader.all(instances().where('organization_id', '=', id).orderBy('created_at', 'desc').limit(SHOWN)),
    spend_caps: capsOf(reader, id),
    api_keys: reader.all(keys.where('organization_id', '=', id).orderBy('created_at', 'desc').limit(SHOWN)),
    disputes: reader.all(disputes.where('organization_id', '=', id).orderBy('opened_at', 'desc').limit(SHOWN)),
    transactions: reader.all(
      entries
        .where('organization_id', '=', id)
        .orderBy(sql`rowid`, 'desc')
        .limit(SHOWN),
    ),
  };
}

function mapFields(inspection: Inspection, map: (fields: Fields) => Fields): Inspection {
  const sections = Object.entries(inspection).map(([name, section]) => [
    name,
    Array.isArray(section) ? section.map(map) : section && map(section),
  ]);
  return Object.fromEntries(sections) as Inspection;
}

/** The columns that hold milliseconds since 1970. */
const TIME = /(_at|_since|_to|_from)$|^at$|^hour$/;

function withTimes(fields: Fields): Fields {
  const shown = Object.entries(fields).map(([name, value]) => {
    return [name, TIME.test(name) && typeof value === 'number' ? new Date(value).toISOString() : value];
  });
  return Object.fromEntries(shown) as Fields;
}
