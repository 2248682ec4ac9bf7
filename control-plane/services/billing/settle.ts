import { messageOf } from '../../../shared/coded-error.js';
import { MINUTE_MS } from '../../../shared/time.js';
import { settle, type Settlement } from '../../domain/settlement.js';
import { listOf, query } from '../../store/sql.js';
import { StoreUnavailable, type Tx } from '../../store/store.js';
import { forEachInOwnTransaction } from '../system/for-each.js';
import type { Platform } from '../system/platform.js';
import { loadAccounts } from './load-accounts.js';
import { postCharges } from './post-charges.js';
import { enforceBalance } from './enforce-balance.js';

/** An organization has 25 instances at most, so that no run holds up requests for long. */
const ORGANIZATIONS_A_RUN = 20;
const PUT_OFF_MS = MINUTE_MS;

/**
 * Makes a worker that settles the organizations whose time has come: a few statements for all of them together, and again at once
 * where there are more. It answers how many. One that cannot be settled holds up no other: it stays due, so that the lag of
 * settlement tells of it, and is tried again after a minute.
 */
export function settlerOf(platform: Platform): () => { settled: number } {
  const { store, clock } = platform;
  /** Those that could not be settled, by when they are tried again, in monotonic milliseconds. A restart tries them at once. */
  const putOff = new Map<string, number>();
  return () => {
    for (const [id, until] of putOff) if (until <= clock.monotonic()) putOff.delete(id);
    const due = findDue(store, [...putOff.keys()]);
    if (due.length === 0) return { settled: 0 };
    try {
      store.transact((tx) => {
        settleOrganizations(platform, tx, due);
        if (due.length === ORGANIZATIONS_A_RUN) tx.nudge('settle');
      });
    } catch (error) {
      // Of none of them.
      if (error instanceof StoreUnavailable) throw error;
      forEachInOwnTransaction(platform, due, settleOne(platform), (tx, id) => {
        putOff.set(id, clock.monotonic() + PUT_OFF_MS);
        tx.nudge('settle');
      });
    }
    return { settled: due.length };
  };
}

/** Throws with the id of an organization that cannot be settled: the log is to name it. */
const settleOne = (platform: Platform) => (tx: Tx, id: string) => {
  try {
    settleOrganizations(platform, tx, [id]);
  } catch (error) {
    throw new Error(`organization ${id} cannot be settled: ${messageOf(error)}`, { cause: error });
  }
};

/** Which have waited longest, other than `but`. */
function findDue(store: Platform['store'], but: readonly string[]): string[] {
  return store.transact((tx) => {
    const due = query.selectFrom('organizations').select('id').where('settle_at', '<=', tx.now);
    const next = due.where('id', 'not in', listOf(but)).orderBy('settle_at').limit(ORGANIZATIONS_A_RUN);
    return tx.all(next).map(({ id }) => id);
  });
}

/**
 * Books what is due up to now, and what follows from a balance follows in the same transaction. Settling twice books nothing
 * twice.
 */
export function settleOrganizations(platform: Platform, tx: Tx, ids: readonly string[]): void {
  const settlements = new Map<string, Settlement>();
  for (const [id, account] of loadAccounts(platform, tx, ids)) settlements.set(id, settle(account, tx.now));
  postCharges(tx, settlements);
  const low = new Set(findLow(tx, ids));
  for (const [id, { exhaustedAt }] of settlements) {
    if (exhaustedAt !== undefined || low.has(id)) enforceBalance(tx, id, exhaustedAt);
  }
}

/** Those that are, or were, at or below zero. */
function findLow(tx: Tx, ids: readonly string[]): string[] {
  const all = query.selectFrom('organizations').select('id').where('id', 'in', listOf(ids));
  const low = all.where((eb) => eb.or([eb('balance_micro', '<=', 0), eb('exhausted_since', 'is not', null)]));
  return tx.all(low).map(({ id }) => id);
}
