import BetterSqlite3 from 'better-sqlite3';
import { SqlRunner } from '../../control-plane/store/sql.js';
import { ALLOWED } from './allowed-plans.js';

/** Tables whose rows stay when what they tell of is over. */
const HISTORY = [
  'api_keys',
  'audit_log',
  'charge_days',
  'commands',
  'disputes',
  'gpus',
  'events',
  'instance_gpus',
  'instances',
  'machine_days',
  'measurements',
  'mails',
  'meter_intervals',
  'offers',
  'organization_acts',
  'organization_days',
  'payments',
  'refunds',
  'templates',
  'transactions',
  'webhook_deliveries',
];
/** Partial indexes with only what goes on: their size does not grow with history. */
const LIVE_INDEXES = [
  'api_keys_active',
  'api_keys_expiring',
  'api_keys_of_creator',
  'commands_awaited',
  'commands_not_stuck',
  'commands_of_machine',
  'commands_open',
  'commands_to_send',
  'disputes_by_organization',
  'gpus_disputed',
  'gpus_owned',
  'gpus_present',
  'gpus_untold',
  'instances_live_by_age',
  'instances_live_by_machine',
  'instances_live_by_organization',
  'instances_live_by_status',
  'instances_live_by_status_and_age',
  'instances_to_release',
  'instances_with_error',
  'machines_by_name',
  'machines_present',
  'link_requests_new',
  'mails_held',
  'mails_open',
  'mails_queued',
  'mails_queued_by_age',
  'meter_intervals_ignored',
  'meter_intervals_not_credited',
  'meter_intervals_of_disks',
  'meter_intervals_open',
  'meter_intervals_to_attest',
  'meter_intervals_to_settle',
  'meter_intervals_unreported',
  'offers_open',
  'offers_open_by_age',
  'offers_open_of_model',
  'organizations_low',
  'organizations_suspended',
  'organizations_to_settle',
  'quarantine_untold',
  'templates_of_organization',
  'templates_shared',
  'users_operators',
  'webhook_deliveries_pending',
  'webhook_endpoints_due',
  'webhook_endpoints_enabled',
  'webhook_endpoints_rotated',
];

/** Statements that were looked at, each with its fault. */
const looked = new Map<string, Error | undefined>();
let isWatching = false;

/** Makes every statement of the control plane throw, each time, when its cost grows with history. */
export function refuseGrowingStatements(): void {
  // Modules are shared between files.
  if (isWatching) return;
  isWatching = true;
  const { prototype } = SqlRunner as unknown as { prototype: { prepare(sql: string): BetterSqlite3.Statement } };
  const prepare = Reflect.get(prototype, 'prepare');
  prototype.prepare = function (this: { connection: BetterSqlite3.Database }, sql) {
    if (!looked.has(sql)) looked.set(sql, errorOf(this.connection, sql));
    const error = looked.get(sql);
    if (error) throw error;
    return prepare.call(this, sql);
  };
}

function errorOf({ name }: BetterSqlite3.Database, sql: string): Error | undefined {
  // Without the triggers of the control plane's connection: beside a trigger, SQLite also plans what a foreign key might need.
  const connection = new BetterSqlite3(name, { readonly: true });
  const fault = faultOf(connection, sql);
  connection.close();
  // Statements of the tests themselves may cost what they will.
  if (fault === undefined || !isFromControlPlane()) return undefined;
  return new Error(`the cost of a statement grows with history: ${fault}\n${sql}`);
}

/**
 * Returns why the cost of a statement grows with history; undefined: it does not, or that is allowed. A filter beside the searched
 * columns is not seen: a search that ends at a limit counts as bounded.
 */
export function faultOf(connection: BetterSqlite3.Database, sql: string): string | undefined {
  const parameters = Array.from(sql.matchAll(/\?/g), () => null);
  const plan = connection.prepare<unknown[], { detail: string }>(`EXPLAIN QUERY PLAN ${sql}`).all(...parameters);
  const steps = plan.map(({ detail }) => detail);
  const isCut = /\blimit\b/i.test(sql) && !steps.some((step) => step.startsWith('USE TEMP B-TREE'));
  const fault = steps.map((step) => faultIn(connection, sql, step, isCut)).find((text) => text !== undefined);
  if (fault === undefined || ALLOWED.some(({ statement }) => statement.test(sql))) return undefined;
  return fault;
}

/** `isCut`: the statement ends at a limit, and reads its rows in their order. */
function faultIn(connection: BetterSqlite3.Database, sql: string, step: string, isCut: boolean): string | undefined {
  if (step.startsWith('USE TEMP B-TREE')) return step;
  const [, verb, name = '', index] = /^(SCAN|SEARCH) (\w+)(?:.* INDEX (\w+))?/.exec(step) ?? [];
  if (index !== undefined && LIVE_INDEXES.includes(index)) return undefined;
  if (verb === 'SCAN') {
    const isOfValues = /^SCAN (json_each|\d+-ROW|CONSTANT|\(subquery|\d+ CONSTANT)/.test(step);
    // A scan that filters may read everything until it finds enough.
    return isOfValues || (isCut && !/\bwhere\b/i.test(sql)) ? undefined : step;
  }
  const table = new RegExp(`"(\\w+)" as "${name}"`).exec(sql)?.[1] ?? name;
  if (verb !== 'SEARCH' || !HISTORY.includes(table) || isCut) return undefined;
  return isWholeKey(connection, table, step, index) ? undefined : `unbounded: ${step}`;
}

/** Whether a search names every column of a unique key, so that it finds one row for each of its values. */
function isWholeKey(connection: BetterSqlite3.Database, table: string, step: string, index = ''): boolean {
  if (step.includes('USING INTEGER PRIMARY KEY (rowid=?)')) return true;
  const named = step.match(/\w+=\?/g)?.length ?? 0;
  if (step.includes('USING PRIMARY KEY')) {
    const columns = connection.pragma(`table_info(${table})`) as { pk: number }[];
    return named === columns.filter(({ pk }) => pk > 0).length;
  }
  const indexes = connection.pragma(`index_list(${table})`) as { name: string; unique: 0 | 1; partial: 0 | 1 }[];
  const isUnique = indexes.some((one) => one.name === index && one.unique === 1 && one.partial === 0);
  return isUnique && named === (connection.pragma(`index_info(${index})`) as object[]).length;
}

/** Whether the statement is the control plane's own: the caller of the store is none of the tests' files. */
function isFromControlPlane(): boolean {
  const frames = (new Error().stack ?? '').split('\n').slice(1);
  const caller = frames.find((frame) => !/\/control-plane\/store\/|query-plans/.test(frame) && frame.includes('/'));
  return caller?.includes('/control-plane/') ?? false;
}
