import { HOUR_MS, MINUTE_MS } from '../../../shared/time.js';
import { anOperator } from '../../domain/act.js';
import { GRACE_MS } from '../../domain/deadlines.js';
import type { InstanceStatus } from '../../domain/instances/instance-state.js';
import { suspensionWarning } from '../../domain/suspension.js';
import type { Row } from '../../store/schema.js';
import { compileOnce, query, sql, updateRows } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import { getOrganization } from '../organizations/organizations.js';
import { recordEvent } from '../events/record.js';
import { findLiveRates, instancesIn } from '../instances/queries.js';
import { requestDestroy, requestStop } from '../instances/requests.js';
import { forEachInOwnTransaction } from '../system/for-each.js';
import type { Platform } from '../system/platform.js';

/** Organizations that one run looks at. Each has about 25 instances at most. */
const BATCH = 20;
/** How soon an organization is looked at again: while something may come up, and otherwise. */
const AGAIN_MS = { busy: 2_000, quiet: MINUTE_MS };
/** From these an instance can still come to run: a deploy was in flight, or a stop times out. */
const BUSY: readonly InstanceStatus[] = ['creating', 'starting', 'running', 'stopping'];
const AT_REST: readonly Extract<InstanceStatus, 'stopped' | 'error'>[] = ['stopped', 'error'];

/**
 * Looks at the suspended organizations that are due: stops what runs, warns of disks that will be gone, and destroys them when their time
 * is over, like `destroyUnpaid`: not while an operator must confirm the clock, and not in the first two minutes of a control plane.
 * Returns the number of organizations.
 */
export function enforceSuspensions(platform: Platform): { looked: number } {
  const due = platform.store.transact((tx) => tx.all(dueAt({ now: tx.now })));
  const looked = forEachInOwnTransaction(
    platform,
    due,
    (tx, { id }) => enforceSuspension(platform, tx, id),
    (tx, { id }) => tx.run(updateRows('organizations', { suspension_look_at: tx.now + MINUTE_MS }, { id })),
  );
  return { looked };
}

const dueAt = compileOnce(({ now }: { now: number }) =>
  query
    .selectFrom('organizations')
    .select('id')
    .where('suspension_look_at', '<=', now)
    .orderBy('suspension_look_at')
    .limit(sql.lit(BATCH)),
);

/** Carries out what a suspension demands now, and says when the worker looks next. Does nothing if the organization is not suspended. */
export function enforceSuspension(platform: Platform, tx: Tx, id: string): void {
  const organization = getOrganization(tx, id);
  if (organization.suspended_at === null) return;
  stopAll(tx, organization);
  keepDisksOrDestroy(platform, tx, organization);
  tx.run(updateRows('organizations', { suspension_look_at: nextLook(tx, id) }, { id }));
}

function stopAll(tx: Tx, { id, suspended_reason }: Row<'organizations'>): void {
  const why = suspended_reason ?? '';
  const message = `an operator has suspended the organization: ${why}`;
  for (const instance of instancesIn(tx, id, 'running'))
    requestStop(tx, instance, { kind: 'suspended', message }, anOperator(why));
}

function keepDisksOrDestroy(platform: Platform, tx: Tx, organization: Row<'organizations'>): void {
  const { id, disks_kept_until: until, suspension_told_hours: told } = organization;
  const instances = AT_REST.flatMap((status) => instancesIn(tx, id, status));
  if (until === null || instances.length === 0) return;
  if (until > tx.now || told === null) return warn(tx, organization, instances.length);
  if (!mayDestroy(platform)) return;
  const message =
    'the organization is suspended, and the time for which its disks are kept is over: the instance is destroyed';
  for (const instance of instances) requestDestroy(tx, instance, { kind: 'suspension_expired', message });
}

/** Warns of disks that will be gone. Nothing is destroyed less than an hour after a first warning, which can be late. */
function warn(tx: Tx, { id, suspended_reason, ...organization }: Row<'organizations'>, instances: number): void {
  const { suspension_told_hours: told } = organization;
  const kept = organization.disks_kept_until ?? tx.now;
  const hours = suspensionWarning(kept, told, tx.now);
  if (hours === null) return;
  const until = Math.max(kept, tx.now + (told === null ? HOUR_MS : 0));
  tx.run(updateRows('organizations', { suspension_told_hours: hours, disks_kept_until: until }, { id }));
  const data = { reason: suspended_reason ?? '', hours, destroyed_at: new Date(until).toISOString(), instances };
  recordEvent(tx, id, 'organization.disks_at_risk', `orgs/${id}`, data);
}

function mayDestroy({ clock, clockSteps, bootedAt }: Platform): boolean {
  return clockSteps.isTrusted() && clock.monotonic() - bootedAt >= GRACE_MS;
}

/** Returns when to look next; null: the organization has nothing left that could run or be destroyed. */
function nextLook(tx: Tx, id: string): number | null {
  const statuses = findLiveRates(tx, id).map(({ status }) => status);
  if (statuses.some((status) => BUSY.includes(status))) return tx.now + AGAIN_MS.busy;
  return statuses.some((status) => (AT_REST as readonly string[]).includes(status)) ? tx.now + AGAIN_MS.quiet : null;
}
