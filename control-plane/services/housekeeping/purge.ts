import { MINUTE_MS } from '../../../shared/time.js';
import { SLOW_IMAGE_MEMORY_MS } from '../../domain/instances/slow-image.js';
import { compileOnce, query, sql } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import { keyPurgerOf } from '../billing/caps/ended-keys.js';
import { TEMPLATES_A_RUN, endOldTemplates } from '../catalogue/ended-templates.js';
import { eventPurgerOf } from '../events/purge.js';
import { purgeMails } from '../mail/outbox.js';
import { purgeCountedMails } from '../mail/strangers.js';
import { IDEMPOTENCY_MS } from '../instances/idempotency.js';
import { purgeImageRequirements } from '../instances/image-requirements.js';
import { dropSlowImage } from '../instances/slow-images.js';
import { ACTS_A_RUN, purgeActs } from '../system/acts.js';
import type { Core } from '../system/platform.js';
import { purgeWebhooks } from '../webhooks/purge.js';

/** Most rows of one table in one run. */
const BATCH = 500;
const EVERY_MS = MINUTE_MS;

/** Deletes rows that are over, at most `most`. Returns how many. */
type Purge = (tx: Tx, most: number) => number;

/**
 * Makes the worker that deletes expired sessions, invitations, links, device codes, begun second factors, idempotency keys, slow images,
 * requirements of images, deliveries of webhooks, finished mails, networks of old sign-ins, acts, events, API keys that have ended, and
 * templates that earlier releases have deactivated, the oldest first, once a minute. `others` delete at most so many rows of their own
 * each. The worker returns the number deleted.
 */
export function purgerOf(core: Core, others: readonly Purge[]): () => { purged: number } {
  const { store, clock } = core;
  const purgeEvents = eventPurgerOf(core);
  const purgeKeys = keyPurgerOf(core);
  let dueAt = 0;
  return () => {
    const often = purgeEvents() + purgeKeys();
    if (clock.monotonic() < dueAt) return { purged: often };
    dueAt = clock.monotonic() + EVERY_MS;
    return store.transact((tx) => {
      const acts = purgeActs(tx);
      const templates = endOldTemplates(core, tx);
      // There may be more: they do not wait for the next minute.
      if (acts === ACTS_A_RUN || templates === TEMPLATES_A_RUN) dueAt = clock.monotonic();
      const purged =
        purgeExpired(tx) +
        purgeIdempotencyKeys(tx) +
        purgeSlowImages(tx) +
        purgeImageRequirements(tx, BATCH) +
        purgeWebhooks(tx, BATCH) +
        purgeMails(tx, BATCH) +
        purgeCountedMails(tx, BATCH) +
        others.reduce((sum, purge) => sum + purge(tx, BATCH), 0);
      return { purged: often + acts + templates + purged };
    });
  };
}

const EXPIRING = [
  'sessions',
  'invites',
  'link_requests',
  'device_codes',
  'device_code_guesses',
  'factor_requests',
] as const;

const expiredIn = EXPIRING.map((table) => ({
  table,
  expiredAt: compileOnce(({ now }: { now: number }) =>
    query.selectFrom(table).select('id').where('expires_at', '<=', now).orderBy('expires_at').limit(sql.lit(BATCH)),
  ),
}));

function purgeExpired(tx: Tx): number {
  let purged = 0;
  for (const { table, expiredAt } of expiredIn) {
    const ids = tx.all(expiredAt({ now: tx.now })).map(({ id }) => id);
    if (ids.length > 0) tx.run(query.deleteFrom(table).where('id', 'in', ids));
    purged += ids.length;
  }
  return purged;
}

function purgeIdempotencyKeys(tx: Tx): number {
  const found = tx.all(keysBefore({ before: tx.now - IDEMPOTENCY_MS }));
  for (const { organization_id, key } of found)
    tx.run(query.deleteFrom('idempotency_keys').where('organization_id', '=', organization_id).where('key', '=', key));
  return found.length;
}

const keysBefore = compileOnce(({ before }: { before: number }) =>
  query
    .selectFrom('idempotency_keys')
    .select(['organization_id', 'key'])
    .where('created_at', '<=', before)
    .orderBy('created_at')
    .limit(sql.lit(BATCH)),
);

function purgeSlowImages(tx: Tx): number {
  const found = tx.all(imagesBefore({ before: tx.now - SLOW_IMAGE_MEMORY_MS }));
  for (const row of found) dropSlowImage(tx, row);
  return found.length;
}

const imagesBefore = compileOnce(({ before }: { before: number }) =>
  query
    .selectFrom('slow_images')
    .select(['organization_id', 'source', 'machine_id'])
    .where('retry_at', '<=', before)
    .orderBy('retry_at')
    .limit(sql.lit(BATCH)),
);
