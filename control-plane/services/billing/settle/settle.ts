import { messageOf } from '../../../../shared/coded-error.js';
import { MINUTE_MS } from '../../../../shared/time.js';
import { settle, type Settlement } from '../../../domain/money/settlement.js';
import { compileOnce, listIn, query, sql } from '../../../store/sql.js';
import { StoreUnavailable, type Tx } from '../../../store/store.js';
import { forEachInOwnTransaction } from '../../system/for-each.js';
import type { Platform } from '../../system/platform.js';
import { endedByLimit } from '../limits/after-settlement.js';
import { settleEarlierLimits } from '../limits/earlier-limits.js';
import { loadAccounts } from '../limits/load-accounts.js';
import { postCharges } from './post-charges.js';
import { warnOfBalance, warnOfDisks } from './warnings.js';
import { enforceBalance } from '../limits/enforce-balance.js';
import { destroyAtLimit, enforceLimit } from '../limits/enforce-limits.js';
import { tellOfLimits } from '../limits/tell-limits.js';

/** Organizations that one run settles. Each has at most 25 instances, so a run delays requests only shortly. */
const ORGANIZATIONS_A_RUN = 20;
const PUT_OFF_MS = MINUTE_MS;

/**
 * Makes the worker that settles the organizations that are due, with a few statements for all of them. It runs again at once if more
 * are due, and returns the number settled. An organization that cannot be settled does not hold up others: it stays due, which
 * shows in the settlement lag, and is tried again after a minute. Throws then, like {@link forEachInOwnTransaction}.
 */
export function settlerOf(platform: Platform): () => { settled: number } {
  const { store, clock } = platform;
  /** Failed organizations, with the time of their next attempt in monotonic milliseconds. A restart tries them at once. */
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
      // No organization could be written, so trying each alone would not help.
      if (error instanceof StoreUnavailable) throw error;
      forEachInOwnTransaction(platform, due, settleOne(platform), (tx, id) => {
        putOff.set(id, clock.monotonic() + PUT_OFF_MS);
        tx.nudge('settle');
      });
    }
    return { settled: due.length };
  };
}

/** Settles one organization. Throws an Error that names its id, for the log. */
const settleOne = (platform: Platform) => (tx: Tx, id: string) => {
  try {
    settleOrganizations(platform, tx, [id]);
  } catch (error) {
    throw new Error(`organization ${id} cannot be settled: ${messageOf(error)}`, { cause: error });
  }
};

/** Returns the organizations that have been due longest, without `but`. */
function findDue(store: Platform['store'], but: readonly string[]): string[] {
  const due = store.transact((tx) => tx.all(dueAt({ now: tx.now, but: JSON.stringify(but) })));
  return due.map(({ id }) => id);
}

const dueAt = compileOnce(({ now, but }: { now: number; but: string }) =>
  query
    .selectFrom('organizations')
    .select('id')
    .where('settle_at', '<=', now)
    .where('id', 'not in', listIn(but))
    .orderBy('settle_at')
    .limit(sql.lit(ORGANIZATIONS_A_RUN)),
);

/**
 * Charges usage up to now, enforces the balances and limits, and warns of what is to come, in one transaction. Settling twice charges nothing
 * twice.
 */
export function settleOrganizations(platform: Platform, tx: Tx, ids: readonly string[]): void {
  const accounts = loadAccounts(platform, tx, ids);
  const settlements = new Map<string, Settlement>();
  for (const [id, account] of accounts) settlements.set(id, settle(account, tx.now));
  postCharges(tx, settlements);
  if ([...accounts.values()].some(({ hasEarlier }) => hasEarlier)) settleEarlierLimits(tx, settlements);
  const low = new Set(findLow(tx, ids));
  for (const [id, { exhaustedAt }] of settlements) {
    if (exhaustedAt !== undefined || low.has(id)) enforceBalance(tx, id, exhaustedAt);
  }
  for (const [id, account] of accounts) {
    const settlement = settlements.get(id);
    if (!settlement) continue;
    for (const stop of settlement.stops) enforceLimit(platform, tx, stop);
    for (const instanceId of endedByLimit(account, settlement, tx.now)) destroyAtLimit(platform, tx, instanceId);
    tellOfLimits(tx, account, settlement);
    warnOfBalance(tx, id, account);
    if (low.has(id) || account.disksAtRiskHours !== null) warnOfDisks(platform, tx, id);
  }
}

/** Returns the organizations whose balance is at or below zero, or was at the last settlement. */
function findLow(tx: Tx, ids: readonly string[]): string[] {
  return tx.all(lowAmong({ ids: JSON.stringify(ids) })).map(({ id }) => id);
}

const lowAmong = compileOnce(({ ids }: { ids: string }) =>
  query
    .selectFrom('organizations')
    .select('id')
    .where('id', 'in', listIn(ids))
    .where((eb) => eb.or([eb('balance_micro', '<=', 0), eb('exhausted_since', 'is not', null)])),
);
