import { HOUR_MS, MINUTE_MS } from '../../../shared/time.js';
import { GRACE_MS } from '../../domain/deadlines.js';
import { query, sql } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import { forEachInOwnTransaction } from '../system/for-each.js';
import type { Core, Platform } from '../system/platform.js';
import { findInstance, type Instance } from '../instances/queries.js';
import { amend } from '../instances/transitions.js';
import { eventsOfKind, recordNote } from '../events/timeline.js';
import { requestDestroy } from '../instances/requests.js';

const BATCH = 200;
const EVERY_MS = MINUTE_MS;
/** The event that announces the time of the destroy. An instance without it is not destroyed. */
const ANNOUNCED = 'destroy_scheduled';
const REMINDED = 'destroy_soon';
const WHY = 'the disk of an instance in error can no longer be reached';

/**
 * Makes the worker that destroys instances which have been in `error` for `afterMs`, because they hold disk space and nobody can start
 * them. It looks once a minute. An event announces the time when an instance enters `error`, and another one an hour before.
 * Nothing is destroyed while the clock must be confirmed, or less than `afterMs` after the announcement. Returns the number
 * destroyed.
 */
export function errorExpirerOf(platform: Platform, afterMs: number): () => { destroyed: number } {
  let dueAt = 0;
  return () => {
    const now = platform.clock.monotonic();
    if (now < dueAt || now - platform.bootedAt < GRACE_MS || !platform.clockSteps.isTrusted()) return { destroyed: 0 };
    dueAt = now + EVERY_MS;
    return expireErrors(platform, afterMs);
  };
}

function expireErrors(core: Core, afterMs: number): { destroyed: number } {
  const { unannounced, soon, due } = core.store.transact((tx) => ({
    unannounced: inError(tx, tx.now, { without: ANNOUNCED }),
    soon: afterMs > HOUR_MS ? inError(tx, tx.now - afterMs + HOUR_MS, { with: ANNOUNCED, without: REMINDED }) : [],
    due: inError(tx, tx.now - afterMs, { with: ANNOUNCED }),
  }));
  eachInError(core, unannounced, (tx, instance) => {
    amend(tx, instance, { progress_at: tx.now });
    recordNote(
      tx,
      instance.id,
      ANNOUNCED,
      `${WHY}: the instance is destroyed at ${new Date(tx.now + afterMs).toISOString()}`,
    );
  });
  eachInError(core, soon, (tx, { id }) =>
    recordNote(tx, id, REMINDED, `${WHY}: the instance is destroyed within an hour`),
  );
  const destroyed = eachInError(core, due, (tx, instance) => {
    requestDestroy(tx, instance, { kind: 'error_expired', message: `${WHY}: the instance is destroyed` });
  });
  return { destroyed };
}

function eachInError(core: Core, found: readonly { id: string }[], work: (tx: Tx, instance: Instance) => void): number {
  return forEachInOwnTransaction(core, found, (tx, { id }) => {
    const instance = findInstance(tx, id);
    if (instance?.status === 'error') work(tx, instance);
  });
}

/** Returns instances that are in `error` since `since` or longer and have, or lack, these events. */
function inError(tx: Tx, since: number, events: { with?: string; without?: string }): { id: string }[] {
  const told = (kind: string) => eventsOfKind(sql.ref<string>('instances.id'), kind);
  let found = query
    .selectFrom('instances')
    .select('id')
    .where('status', '=', sql.lit('error'))
    .where('status', '<>', sql.lit('destroyed'))
    .where('progress_at', '<=', since);
  const { with: having, without } = events;
  if (having !== undefined) found = found.where((eb) => eb.exists(told(having)));
  if (without !== undefined) found = found.where((eb) => eb.not(eb.exists(told(without))));
  return tx.all(found.limit(BATCH));
}
