import { MINUTE_MS } from '../../../shared/time.js';
import { settle, type Settlement } from '../../domain/settlement.js';
import { listOf, query } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import { forEachInOwnTransaction } from '../system/for-each.js';
import type { Platform } from '../system/platform.js';
import { loadAccounts } from './load-accounts.js';
import { postCharges } from './post-charges.js';
import { enforceBalance } from './enforce-balance.js';

/** An organisation has 25 instances at most, so that no run holds up requests for long. */
const ORGANIZATIONS_A_RUN = 20;
const PUT_OFF_MS = MINUTE_MS;

/**
 * Settles the organisations whose time has come: a few statements for all of them together, and again at once where there are
 * more. One that cannot be settled holds up no other. Answers how many.
 */
export function settleDue(platform: Platform): { settled: number } {
  const due = platform.store.transact((tx) => {
    const ready = query.selectFrom('organizations').select('id').where('settle_at', '<=', tx.now);
    return tx.all(ready.orderBy('settle_at').limit(ORGANIZATIONS_A_RUN)).map(({ id }) => id);
  });
  if (due.length === 0) return { settled: 0 };
  try {
    platform.store.transact((tx) => {
      settleOrganizations(platform, tx, due);
      if (due.length === ORGANIZATIONS_A_RUN) tx.nudge('settle');
    });
  } catch {
    settleOneByOne(platform, due);
  }
  return { settled: due.length };
}

/** One that fails is put off, so that it takes nobody else's turn. */
function settleOneByOne(platform: Platform, due: readonly string[]): void {
  const settleOne = (tx: Tx, id: string) => settleOrganizations(platform, tx, [id]);
  forEachInOwnTransaction(platform, due, settleOne, (tx, id) => {
    const settle_at = tx.now + PUT_OFF_MS;
    tx.run(query.updateTable('organizations').set({ settle_at }).where('id', '=', id));
    tx.nudge('settle');
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
