import type { Row } from '../../store/schema.js';
import { query, sql } from '../../store/sql.js';
import { newestFirst, pageOf, type Page, type PageRequest } from '../pages.js';
import type { Platform } from '../platform.js';

/** What an operator sees of a renter's instance. */
export type OperatedInstance = Pick<
  Row<'instances'>,
  'id' | 'organization_id' | 'machine_id' | 'status' | 'error_code' | 'disk_gb' | 'created_at' | 'status_changed_at'
>;

/** Operators: the instances of all organisations that are not destroyed, newest first. */
export function listAllInstances(
  platform: Platform,
  { machine_id, status, ...request }: PageRequest & { machine_id?: string; status?: Row<'instances'>['status'] },
): Page<OperatedInstance> {
  let all = query
    .selectFrom('instances')
    .select(['id', 'organization_id', 'machine_id', 'status', 'error_code', 'disk_gb'])
    .select(['created_at', 'status_changed_at'])
    .where('status', '<>', sql.lit('destroyed'));
  if (machine_id !== undefined) all = all.where('machine_id', '=', machine_id);
  if (status !== undefined) all = all.where('status', '=', status);
  return platform.store.transact((tx) => pageOf(tx, all, request, newestFirst()));
}
