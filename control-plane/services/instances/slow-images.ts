import { slowImageBackOffMs, slowImageSource } from '../../domain/slow-image.js';
import type { Row } from '../../store/schema.js';
import { compileOnce, query } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import { readTemplateSnapshot } from '../catalogue/stored-template.js';
import { dropClaims } from './claims.js';
import type { Instance } from './queries.js';
import { fail } from './transitions.js';

export type SlowImage = Row<'slow_images'>;

/** The code with which an agent reports that a pull failed because it was too slow. */
export const IMAGE_TOO_SLOW = 'IMAGE_TOO_SLOW';
/** Most rows of one organization; those with the earliest retry are deleted first. */
const MAX_SOURCES = 100;

/** Returns the row that forbids to deploy the image now, or undefined. */
export function findSlowImage(tx: Tx, organizationId: string, image: string): SlowImage | undefined {
  const known = find(tx, organizationId, slowImageSource(image));
  // A failure in the future dates from before the clock was set back.
  return known && known.failed_at <= tx.now && tx.now < known.retry_at ? known : undefined;
}

/** Ends a deploy that a slow image forbids: it goes to `error` at once, frees its GPUs and sends no command to its host. */
export function failUntried(tx: Tx, instance: Instance, slow: SlowImage): void {
  dropClaims(tx, instance.id);
  fail(tx, instance, 'provision_failed', reasonOf(slow));
}

/** Says why an image cannot be deployed now, and from when on it can be. */
export function reasonOf({ source, failures, retry_at }: SlowImage): string {
  const times = failures === 1 ? 'the last time' : `the last ${failures} times`;
  const until = new Date(retry_at).toISOString();
  return `images from ${source} were too slow to pull ${times}; this organization can deploy them again from ${until}`;
}

/** Records that pulling the image of the instance was too slow. Deploys from before the last failure do not count again. */
export function noteSlowImage(tx: Tx, instance: Instance): void {
  const { organization_id, created_at } = instance;
  const source = sourceOf(instance);
  const known = find(tx, organization_id, source);
  if (known && created_at < known.failed_at) return;
  const failures = (known?.failures ?? 0) + 1;
  const values = { failures, failed_at: tx.now, retry_at: tx.now + slowImageBackOffMs(failures) };
  tx.run(
    query
      .insertInto('slow_images')
      .values({ organization_id, source, ...values })
      .onConflict((conflict) => conflict.columns(['organization_id', 'source']).doUpdateSet(values)),
  );
  dropSurplus(tx, organization_id);
}

/** Deletes the failures of the source of the instance's image, because an image from it was pulled. */
export function forgetSlowImage(tx: Tx, instance: Instance): void {
  const rows = query.deleteFrom('slow_images').where('organization_id', '=', instance.organization_id);
  tx.run(rows.where('source', '=', sourceOf(instance)));
}

function sourceOf({ template_snapshot }: Instance): string {
  return slowImageSource(readTemplateSnapshot(template_snapshot).image);
}

function find(tx: Tx, organizationId: string, source: string): SlowImage | undefined {
  return tx.get(slowImage({ organizationId, source }));
}

const slowImage = compileOnce(({ organizationId, source }: { organizationId: string; source: string }) =>
  query
    .selectFrom('slow_images')
    .selectAll()
    .where('organization_id', '=', organizationId)
    .where('source', '=', source),
);

function dropSurplus(tx: Tx, organizationId: string): void {
  const rows = query.selectFrom('slow_images').select('source').where('organization_id', '=', organizationId);
  const surplus = tx.all(rows.orderBy('retry_at', 'desc').offset(MAX_SOURCES).limit(MAX_SOURCES));
  for (const { source } of surplus)
    tx.run(query.deleteFrom('slow_images').where('organization_id', '=', organizationId).where('source', '=', source));
}
