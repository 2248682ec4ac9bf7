import type { PulledImage } from '../../../shared/gen/gpurent/agent/v1/agent.js';
import { areTellable } from '../../../shared/image-requirement.js';
import { canonicalName, parseImageReference } from '../../../shared/image-reference.js';
import { DAY_MS } from '../../../shared/time.js';
import { agreedRequirements, digestOn } from '../../domain/catalogue/image-requirement.js';
import { compileOnce, query, sql } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import { readTemplateSnapshot } from '../catalogue/stored-template.js';
import type { Instance } from './queries.js';

/** Most rows of one organization; the oldest are deleted first. */
const MAX_ROWS = 100;
/** A pull tells anew what an image requires. */
const KEPT_MS = 90 * DAY_MS;
const DIGEST = /^sha256:[a-f0-9]{64}$/;

/**
 * Records what a machine says that the image of an instance requires, if it is creating the instance now. It is known only to the
 * organization of the instance, and beside what other machines say: a machine that lies reaches nobody who has not deployed on it.
 */
export function noteImageRequirements(tx: Tx, instance: Instance, { digest, requirements }: PulledImage): void {
  const { organization_id, machine_id } = instance;
  const image = nameOf(readTemplateSnapshot(instance.template_snapshot).image);
  if (instance.status !== 'creating' || image === undefined) return;
  const isSound = DIGEST.test(digest) && digest === (image.digest ?? digest) && areTellable(requirements);
  if (!isSound) return;
  const values = { digest, requirements: requirements.join('\n'), told_at: tx.now };
  tx.run(
    query
      .insertInto('image_requirements')
      .values({ organization_id, image: image.name, machine_id, ...values })
      .onConflict((conflict) => conflict.columns(['organization_id', 'image', 'machine_id']).doUpdateSet(values)),
  );
  dropSurplus(tx, organization_id);
}

/**
 * Returns what an image requires, for a deploy on a machine, as far as the organization's machines have said of its digest. None if they
 * contradict each other.
 */
export function knownRequirements(tx: Tx, organizationId: string, image: string, machineId: string): string[] {
  const found = nameOf(image);
  if (!found) return [];
  const digest = found.digest ?? digestOn(machineId, tx.all(pulledAs({ organizationId, image: found.name })), tx.now);
  if (digest === undefined) return [];
  const told = tx.all(toldOf({ organizationId, digest })).map(({ requirements }) => requirements);
  return agreedRequirements(told);
}

/** Deletes what was told long ago, at most so many rows, the oldest first. Returns how many. */
export function purgeImageRequirements(tx: Tx, most: number): number {
  const found = tx.all(toldBefore({ before: tx.now - KEPT_MS, most }));
  for (const row of found) drop(tx, row);
  return found.length;
}

/** Returns the one name of an image with its tag or digest, and the digest; undefined: it is no reference. */
function nameOf(image: string): { name: string; digest: string | null } | undefined {
  const reference = parseImageReference(image);
  if (!reference) return undefined;
  const { registry, repository } = canonicalName(reference);
  const { tag, digest } = reference;
  const which = digest === null ? `:${tag ?? 'latest'}` : `@${digest}`;
  return { name: `${registry}/${repository}${which}`, digest };
}

const pulledAs = compileOnce(({ organizationId, image }: { organizationId: string; image: string }) =>
  query
    .selectFrom('image_requirements')
    .select(['machine_id', 'digest', 'told_at'])
    .where('organization_id', '=', organizationId)
    .where('image', '=', image),
);

const toldOf = compileOnce(({ organizationId, digest }: { organizationId: string; digest: string }) =>
  query
    .selectFrom('image_requirements')
    .select('requirements')
    .where('organization_id', '=', organizationId)
    .where('digest', '=', digest),
);

const toldBefore = compileOnce(({ before, most }: { before: number; most: number }) =>
  query
    .selectFrom('image_requirements')
    .select(['organization_id', 'image', 'machine_id'])
    .where('told_at', '<=', before)
    .orderBy('told_at')
    .limit(most),
);

function dropSurplus(tx: Tx, organizationId: string): void {
  for (const row of tx.all(surplus({ organizationId }))) drop(tx, row);
}

const surplus = compileOnce(({ organizationId }: { organizationId: string }) =>
  query
    .selectFrom('image_requirements')
    .select(['organization_id', 'image', 'machine_id'])
    .where('organization_id', '=', organizationId)
    .orderBy('told_at', 'desc')
    .offset(sql.lit(MAX_ROWS))
    .limit(sql.lit(MAX_ROWS)),
);

function drop(tx: Tx, row: { organization_id: string; image: string; machine_id: string }): void {
  const rows = query.deleteFrom('image_requirements').where('organization_id', '=', row.organization_id);
  tx.run(rows.where('image', '=', row.image).where('machine_id', '=', row.machine_id));
}
