import { DAY_MS, HOUR_MS } from '../../shared/time.js';
/** How much {@link growFleet} makes, beside what is there. */
export interface FleetSize {
  /** With eight GPUs each, and one offer; none of their hosts is connected. The last ones have what is in quarantine. */
  machines: number;
  organizations: number;
  /** With one GPU each: eight on a machine, the organizations in turn. */
  instances: number;
  /** Commands of instances that are to be destroyed and whose host is away. */
  commands: number;
  /** Instances whose hosts have ignored a stop for an hour, which is still charged. */
  ignored: number;
  /** Ignored stops that were credited, of the instances in turn. */
  credited: number;
  quarantined: number;
  /** Public templates of the organizations. */
  templates: number;
  payments: number;
  disputes: number;
  suspended: number;
  /** Rows of what operators have done. */
  acts: number;
  /** On which every machine was charged for. */
  days: number;
}

/** 10,000 machines with those that a benchmark connects, and 50,000 instances. */
export const LARGE: FleetSize = {
  machines: 9e3,
  organizations: 2e3,
  instances: 5e4,
  commands: 500,
  quarantined: 300,
  ignored: 100,
  credited: 1e5,
  templates: 1e4,
  payments: 1e5,
  disputes: 50,
  suspended: 20,
  acts: 1e5,
  days: 30,
};

/** A database that rows are added to. */
export interface Grown {
  exec(sql: string): void;
  columnsOf(table: string): string[];
}

const MODELS = ['NVIDIA H100 80GB HBM3', 'NVIDIA A100-SXM4-80GB', 'NVIDIA L40S', 'NVIDIA GeForce RTX 4090'];

/** Ids of what is made: its kind and its number. */
const idOf = (kind: string, number = 'i') => `printf('${kind}-0000-4000-8000-%012x', ${number})`;
export const MACHINE_ID = '00000001-0000-4000-8000-000000000000';
export const ORGANIZATION_ID = '00000002-0000-4000-8000-000000000000';
const [MACHINE, ORGANIZATION, INSTANCE] = ['00000001', '00000002', '00000003'];

/** Copies the only machine, organization and running instance until the marketplace is large. Times are ms since 1970 UTC. */
export function growFleet(database: Grown, size: FleetSize, now: number): void {
  /** Inserts `count` copies of a row; `i` is the number of a copy. A value of '' leaves a column to its default. */
  const copy = (table: string, where: string, count: number, values: Record<string, string>) => {
    const names = database.columnsOf(table).filter((name) => values[name] !== '');
    const chosen = names.map((name) => values[name] ?? name).join(', ');
    database.exec(`WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < ${count - 1})
      INSERT INTO ${table} (${names.join(', ')}) SELECT ${chosen} FROM n, (SELECT * FROM ${table} WHERE ${where} LIMIT 1)`);
  };
  const machines = { id: idOf(MACHINE), name: "'rack-' || i", enrolled_at: 'enrolled_at - i' };
  const [its, owner] = [idOf(MACHINE, '(i / 8)'), idOf(ORGANIZATION, `(i % ${size.organizations})`)];
  const ran = "(SELECT id FROM instances WHERE status = 'running' ORDER BY created_at DESC LIMIT 1)";
  const home = `machine_id = (SELECT machine_id FROM instances WHERE id = ${ran})`;
  const modelOf = (machine: string) =>
    `CASE ${machine} % 4 ${MODELS.map((name, index) => `WHEN ${index} THEN '${name}'`).join(' ')} END`;
  const isSick = 'i % 800 = 799';
  copy('machines', `id = (SELECT machine_id FROM instances WHERE id = ${ran})`, size.machines, machines);
  copy('gpus', `${home} AND position = 0`, size.machines * 8, {
    machine_id: its,
    uuid: "'GPU-' || i",
    position: 'i % 8',
    model: modelOf('(i / 8)'),
    healthy: `NOT (${isSick})`,
    reason: `iif(${isSick}, 'Xid 79: fell off the bus', NULL)`,
  });
  copy('offers', home, size.machines, {
    id: idOf('00000004'),
    machine_id: idOf(MACHINE),
    created_at: 'created_at - i',
    gpu_model: modelOf('i'),
  });
  copy('organizations', `id = (SELECT organization_id FROM instances WHERE id = ${ran})`, size.organizations, {
    id: idOf(ORGANIZATION),
    name: "'organization ' || i",
    created_at: 'created_at - i',
    payments_frozen_at: `iif(i < ${size.disputes}, ${now}, NULL)`,
    suspended_at: `iif(i >= ${size.organizations - size.suspended}, ${now}, NULL)`,
    suspended_reason: "'abuse'",
    suspended_keep_days: '7',
    disks_kept_until: String(now + 7 * DAY_MS),
    suspension_look_at: `iif(i >= ${size.organizations - size.suspended}, ${now + DAY_MS}, NULL)`,
  });
  copy('users', 'is_operator = 0', size.organizations, {
    id: idOf('00000005'),
    email: "'user-' || i || '@fleet.example'",
  });
  copy('memberships', '1', size.organizations, { organization_id: idOf(ORGANIZATION), user_id: idOf('00000005') });
  copy('instances', `id = ${ran}`, size.instances, {
    id: idOf(INSTANCE),
    machine_id: its,
    organization_id: owner,
    created_at: 'created_at - i - 1',
    status: `iif(i < ${size.commands}, 'destroying', 'running')`,
  });
  copy('meter_intervals', `instance_id = ${ran} AND closed_at IS NULL`, size.instances, {
    id: '',
    instance_id: idOf(INSTANCE),
    machine_id: its,
    organization_id: owner,
    opened_at: `opened_at - iif(i < ${size.ignored}, ${HOUR_MS}, 0)`,
    after_stop: `i < ${size.ignored}`,
  });
  const anyInstance = `(i % ${size.instances})`;
  copy('meter_intervals', `instance_id = ${ran} AND closed_at IS NULL`, size.credited, {
    id: '',
    instance_id: idOf(INSTANCE, anyInstance),
    organization_id: owner,
    after_stop: '1',
    machine_id: idOf(MACHINE, `(${anyInstance} / 8)`),
    opened_at: `opened_at - ${3 * HOUR_MS}`,
    attested_to: `opened_at - ${2 * HOUR_MS}`,
    settled_to: `opened_at - ${2 * HOUR_MS}`,
    closed_at: `opened_at - ${2 * HOUR_MS}`,
    credited_ms: String(HOUR_MS),
    written_off_ms: '0',
  });
  copy('templates', "visibility = 'system'", size.templates, {
    id: idOf('0000000a'),
    name: "'public ' || i",
    visibility: "'public'",
    organization_id: owner,
  });
  copy('gpu_claims', `instance_id = ${ran}`, size.instances, {
    machine_id: its,
    gpu_uuid: "'GPU-' || i",
    instance_id: idOf(INSTANCE),
  });
  copy('commands', "state <> 'open'", size.commands, {
    id: idOf('00000006'),
    instance_id: idOf(INSTANCE),
    machine_id: its,
    kind: "'destroy'",
    state: "'open'",
    accepted_at: 'NULL',
    finished_at: 'NULL',
    code: 'NULL',
    created_at: String(now - DAY_MS),
    sequence: '99',
    next_send_at: String(now),
  });
  fillWithHistory(database, size, now);
}

function fillWithHistory(database: Grown, size: FleetSize, now: number): void {
  const numbers = (count: number) =>
    `WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < ${count - 1})`;
  const today = Math.floor(now / DAY_MS);
  database.exec(`${numbers(size.days)} INSERT INTO machine_days (machine_id, day, gpu_micro, disk_micro)
    SELECT machines.id, ${today} - i, 19200000 + i, 120000 FROM n, machines`);
  database.exec(`${numbers(size.acts)} INSERT INTO audit_log (at, actor_id, action, subject, details)
    SELECT ${now} - 1000 * (${size.acts} - i), (SELECT id FROM users WHERE is_operator = 1), 'machine.cordon',
      ${idOf(MACHINE, `(i % ${size.machines})`)}, '{"cordoned_at":1790000000000}' FROM n`);
  database.exec(`${numbers(size.quarantined)} INSERT INTO quarantine
      (id, machine_id, instance_id, sequence, disk_gb, observation, origin, found_at)
    SELECT ${idOf('00000007')}, ${idOf(MACHINE, `(${size.machines - 1} - i)`)}, ${idOf('00000008')}, 1, 40,
      '{"state":"WORKLOAD_STATE_RUNNING"}', NULL, ${now} - i FROM n`);
  const sums = ['paid', 'credited', 'refunded', 'refund_debited', 'dispute_debited'].map((name) => `${name}_micro`);
  database.exec(`${numbers(size.payments)} INSERT INTO payments (id, organization_id, ${sums.join(', ')}, created_at)
    SELECT 'pi_' || i, ${idOf(ORGANIZATION, `(i % ${size.organizations})`)}, 20000000, 20000000, 0, 0, 0, ${now} - i FROM n`);
  database.exec(`${numbers(size.disputes)} INSERT INTO disputes (id, organization_id, state, amount_micro, opened_at)
    SELECT ${idOf('00000009')}, ${idOf(ORGANIZATION)}, 'open', 0, ${now} FROM n`);
}
