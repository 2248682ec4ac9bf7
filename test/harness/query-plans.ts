import type BetterSqlite3 from 'better-sqlite3';
import { SqlRunner } from '../../control-plane/store/sql.js';
import { ALLOWED } from './allowed-plans.js';

/** Tables whose rows stay when what they tell of is over. */
const HISTORY = [
  'api_keys',
  'audit_log',
  'commands',
  'disputes',
  'gpus',
  'instance_events',
  'instance_gpus',
  'instances',
  'machine_days',
  'meter_intervals',
  'offers',
  'organization_days',
  'payments',
  'refunds',
  'templates',
  'transactions',
];
/** Partial indexes with only what goes on: their size does not grow with history. */
const LIVE_INDEXES = [
  'api_keys_active',
  'api_keys_of_creator',
  'commands_of_machine',
  'commands_to_send',
  'disputes_by_organization',
  'gpus_present',
  'instances_live_by_age',
  'instances_live_by_machine',
  'instances_live_by_organization',
  'instances_live_by_status',
  'instances_to_release',
  'machines_present',
  'meter_intervals_open',
  'meter_intervals_to_attest',
  'meter_intervals_to_settle',
  'meter_intervals_unreported',
  'offers_open',
  'organizations_low',
  'organizations_to_settle',
  'templates_of_organization',
  'templates_shared',
];

const seen = new Set<string>();
let isWatching = false;

/** Makes every statement that a test runs for the first time throw when its cost grows with history. */
export function refuseGrowingStatements(): void {
  // Modules are shared between files.
  if (isWatching) return;
  isWatching = true;
  const { prototype } = SqlRunner as unknown as { prototype: { prepare(sql: string): BetterSqlite3.Statement } };
  const prepare = Reflect.get(prototype, 'prepare');
  prototype.prepare = function (this: { connection: BetterSqlite3.Database }, sql) {
    if (!seen.has(sql)) {
      seen.add(sql);
      const fault = faultOf(this.connection, sql);
      // A stack is dear: a statement of the tests' own is looked at once, too.
      if (fault !== undefined && isFromControlPlane())
        throw new Error(`the cost of a statement grows with history: ${fault}\n${sql}`);
    }
    return prepare.call(this, sql);
  };
}

/** Says why the cost of a statement grows with history; undefined: it does not, or that is allowed. */
export function faultOf(connection: BetterSqlite3.Database, sql: string): string | undefined {
  const parameters = Array.from(sql.matchAll(/\?/g), () => null);
  const plan = connection.prepare<unknown[], { detail: string }>(`EXPLAIN QUERY PLAN ${sql}`).all(...parameters);
  const steps = plan.map(({ detail }) => detail);
  const isCut = /\blimit\b/i.test(sql) && !steps.some((step) => step.startsWith('USE TEMP B-TREE'));
  const fault = steps.map((step) => faultIn(step, isCut)).find((text) => text !== undefined);
  if (fault === undefined || ALLOWED.some(({ statement }) => statement.test(sql))) return undefined;
  return fault;
}

/** `isCut`: the statement ends at a limit, and reads its rows in their order. */
function faultIn(step: string, isCut: boolean): string | undefined {
  const [, verb, table = '', index] = /^(SCAN|SEARCH) (\w+)(?:.* INDEX (\w+))?/.exec(step) ?? [];
  const isLive = index !== undefined && LIVE_INDEXES.includes(index);
  if (step.startsWith('USE TEMP B-TREE')) return step;
  const isValues = /^SCAN (json_each|\d+-ROW|CONSTANT|\(subquery|\d+ CONSTANT)/.test(step);
  if (verb === 'SCAN' && !isLive && !isValues && !isCut) return step;
  const isBounded = isLive || isWholeKey(step) || isCut;
  if (verb === 'SEARCH' && HISTORY.includes(table) && !isBounded) return `unbounded: ${step}`;
  return undefined;
}

/** A search by a whole unique key finds one row. */
function isWholeKey(step: string): boolean {
  return /USING INTEGER PRIMARY KEY|sqlite_autoindex|USING PRIMARY KEY/.test(step);
}

/** Whether the statement is the control plane's own: what called the store is none of the tests' files. */
function isFromControlPlane(): boolean {
  const frames = (new Error().stack ?? '').split('\n').slice(1);
  const caller = frames.find((frame) => !/\/control-plane\/store\/|query-plans/.test(frame) && frame.includes('/'));
  return caller?.includes('/control-plane/') ?? false;
}
