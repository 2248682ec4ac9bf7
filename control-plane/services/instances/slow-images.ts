import {
  failuresAfter,
  heldBackOn,
  slowImageBackOffMs,
  slowImageSource,
  type HeldBack,
} from '../../domain/instances/slow-image.js';
import type { Row } from '../../store/schema.js';
import { compileOnce, query } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import { readTemplateSnapshot } from '../catalogue/stored-template.js';
import { dropClaims } from './claims.js';
import type { Instance } from './queries.js';
import { fail } from './transitions.js';

/** The code with which an agent reports that a pull failed because it was too slow. */
export const IMAGE_TOO_SLOW = 'IMAGE_TOO_SLOW';
/** Most rows of one organization; those with the earliest retry are deleted first. */
const MAX_ROWS = 100;

/** What forbids to deploy an image now. */
export interface SlowImage extends HeldBack {
  source: string;
}

/** Returns what forbids an organization to deploy the image on the machine now, or undefined. */
export function findSlowImage(tx: Tx, organizationId: string, image: string, machineId: string): SlowImage | undefined {
  const source = slowImageSource(image);
  const held = heldBackOn(machineId, find(tx, organizationId, source), tx.now);
  return held && { source, ...held };
}

/** Ends a deploy that a slow image forbids: it goes to `error` at once, frees its GPUs and sends no command to its host. */
export function failUntried(tx: Tx, instance: Instance, slow: SlowImage): void {
  dropClaims(tx, instance.id);
  fail(tx, instance, 'provision_failed', reasonOf(slow));
}

/** Says why an image cannot be deployed now, and from when on it can be. */
export function reasonOf({ source, failures, until, isOnlyThere }: SlowImage): string {
  const where = isOnlyThere ? 'on this machine' : 'on several machines';
  const times = failures === 1 ? 'the last time' : `the last ${failures} times`;
  const again = isOnlyThere ? 'again there' : 'again';
  const elsewhere = isOnlyThere ? ', and on other machines now' : '';
  const can = `this organization can deploy them ${again} from ${new Date(until).toISOString()}${elsewhere}`;
  return `images from ${source} were too slow to pull ${where} ${times}; ${can}`;
}

/** Records that pulling the image of the instance was too slow on its machine. */
export function noteSlowImage(tx: Tx, instance: Instance): void {
  const { organization_id, machine_id, created_at } = instance;
  const source = sourceOf(instance);
  const known = find(tx, organization_id, source);
  const failures = failuresAfter({ machineId: machine_id, deployedAt: created_at }, known);
  if (failures === null) return;
  const values = { failures, failed_at: tx.now, retry_at: tx.now + slowImageBackOffMs(failures) };
  tx.run(
    query
      .insertInto('slow_images')
      .values({ organization_id, source, machine_id, ...values })
      .onConflict((conflict) => conflict.columns(['organization_id', 'source', 'machine_id']).doUpdateSet(values)),
  );
  dropSurplus(tx, organization_id);
}

/** Deletes the failures of the source of the instance's image on all machines, because an image from it was pulled. */
export function forgetSlowImage(tx: Tx, instance: Instance): void {
  const rows = query.deleteFrom('slow_images').where('organization_id', '=', instance.organization_id);
  tx.run(rows.where('source', '=', sourceOf(instance)));
}

function sourceOf({ template_snapshot }: Instance): string {
  return slowImageSource(readTemplateSnapshot(template_snapshot).image);
}

function find(tx: Tx, organizationId: string, source: string): Row<'slow_images'>[] {
  return tx.all(slowPulls({ organizationId, source }));
}

const slowPulls = compileOnce(({ organizationId, source }: { organizationId: string; source: string }) =>
  query
    .selectFrom('slow_images')
    .selectAll()
    .where('organization_id', '=', organizationId)
    .where('source', '=', source),
);

function dropSurplus(tx: Tx, organizationId: string): void {
  const rows = query
    .selectFrom('slow_images')
    .select(['organization_id', 'source', 'machine_id'])
    .where('organization_id', '=', organizationId);
  for (const row of tx.all(rows.orderBy('retry_at', 'desc').offset(MAX_ROWS).limit(MAX_ROWS))) dropSlowImage(tx, row);
}

/** Deletes what is known of one source on one machine. */
export function dropSlowImage(
  tx: Tx,
  row: Pick<Row<'slow_images'>, 'organization_id' | 'source' | 'machine_id'>,
): void {
  const rows = query.deleteFrom('slow_images').where('organization_id', '=', row.organization_id);
  tx.run(rows.where('source', '=', row.source).where('machine_id', '=', row.machine_id));
}
