import { SYSTEM, anOperator, userActor, type Act, type Actor } from '../../../domain/act.js';
import type { AccountCaller, Operator } from '../../../domain/caller.js';
import { Refusal } from '../../../domain/refusal.js';
import { REMOVAL_MS } from '../../../domain/identity/second-factor.js';
import { compileOnce, insertRow, query, sql } from '../../../store/sql.js';
import type { Tx } from '../../../store/store.js';
import { recordAct } from '../../system/acts.js';
import { recordAudit } from '../../system/audit.js';
import { pageOf, type Page, type PageRequest } from '../../system/pages.js';
import type { Core, Platform } from '../../system/platform.js';
import { tellFactor } from './factor-mails.js';
import { hasFactor } from '../sessions/fresh-proof.js';
import { forgetFactorsOf, type FactorRemoval } from './second-factors.js';
import { getUser, isOperator, membershipsOf } from '../users/users.js';

/** Removals that one run of the worker carries out. */
const BATCH = 50;

export type RemovalDetails = FactorRemoval & { email: string };

/**
 * Asks, for an operator, for the removal of all second factors of a user who has lost them. It takes effect after 24 hours: the user is told
 * by mail, and can cancel it. Asking again changes nothing but the reason. Refuses with USER_NOT_FOUND, OWN_ACCOUNT and FACTOR_NOT_FOUND.
 */
export function askForRemoval(platform: Platform, operator: Operator, userId: string, reason: string): RemovalDetails {
  return platform.store.transact((tx) => {
    const user = getUser(tx, userId);
    if (userId === operator.userId)
      throw new Refusal(
        'OWN_ACCOUNT',
        'these are your own second factors; remove them yourself, or ask another operator',
      );
    if (!hasFactor(tx, userId)) throw new Refusal('FACTOR_NOT_FOUND', 'this user has no second factor');
    const known = tx.get(removals().where('user_id', '=', userId));
    const times = { asked_at: known?.asked_at ?? tx.now, effective_at: known?.effective_at ?? tx.now + REMOVAL_MS };
    tx.run(query.deleteFrom('factor_removals').where('user_id', '=', userId));
    const removal = { user_id: userId, asked_by: operator.userId, reason, ...times };
    tx.run(insertRow('factor_removals', removal));
    recordAudit(tx, operator, 'user.second_factor_removal', userId, { email: user.email, reason, ...times });
    recordRemoval(tx, userId, anOperator(reason), 'member.second_factor_removal');
    const { effective_at } = times;
    tellFactor(platform, tx, { userId, email: user.email }, { kind: 'second_factor_removal', effective_at, reason });
    return { ...removal, email: user.email };
  });
}

/** Lists, for an operator, the removals that have not taken effect, the next one first. */
export function listRemovals(core: Core, request: PageRequest): Page<RemovalDetails> {
  return core.store.transact((tx) =>
    pageOf(tx, removals(), request, {
      by: { effective_at: 'asc', user_id: 'asc' },
      keyOf: ({ effective_at, user_id }) => [effective_at, user_id],
    }),
  );
}

/** Cancels, for an operator, a removal. Refuses with REMOVAL_NOT_FOUND. */
export function cancelRemovalOf(core: Core, operator: Operator, userId: string): void {
  core.store.transact((tx) => {
    if (!endRemoval(tx, userId))
      throw new Refusal('REMOVAL_NOT_FOUND', "nobody has asked for the removal of this user's second factors");
    recordRemoval(tx, userId, anOperator(null), 'member.second_factor_removal_cancel');
    recordAudit(tx, operator, 'user.second_factor_removal_cancelled', userId);
  });
}

/** Cancels the removal of the caller's own factors, if there is one. */
export function cancelOwnRemoval(core: Core, { userId, email }: AccountCaller): void {
  core.store.transact((tx) => {
    if (endRemoval(tx, userId))
      recordRemoval(tx, userId, userActor(userId, email), 'member.second_factor_removal_cancel');
  });
}

/** Records in the user's organizations what was done about a removal. */
function recordRemoval(tx: Tx, userId: string, by: Actor, act: Act): void {
  for (const { organization_id } of membershipsOf(tx, userId))
    recordAct(tx, organization_id, by, act, `members/${userId}`);
}

function endRemoval(tx: Tx, userId: string): boolean {
  return tx.run(query.deleteFrom('factor_removals').where('user_id', '=', userId)) > 0;
}

/** Moves the times of removals by a step of the clock, so that users keep their 24 hours. */
export function shiftRemovals(tx: Tx, ms: number): void {
  const shifted = (column: string) => sql<number>`${sql.ref(column)} + ${ms}`;
  const times = { asked_at: shifted('asked_at'), effective_at: shifted('effective_at') };
  tx.run(query.updateTable('factor_removals').set(times));
}

/**
 * Makes the worker that carries out removals whose 24 hours are over: all factors go, and all sessions of the user end. What somebody has
 * asked for who is no operator any more is cancelled instead. It waits while the clock is not trusted. It returns the number of users.
 */
export function factorRemoverOf(platform: Platform): () => { removed: number } {
  return () => {
    if (!platform.clockSteps.isTrusted()) return { removed: 0 };
    return platform.store.transact((tx) => {
      const due = tx.all(dueAt({ now: tx.now }));
      for (const removal of due) {
        if (isOperator(tx, removal.asked_by)) carryOut(platform, tx, removal);
        else cancel(tx, removal);
      }
      return { removed: due.length };
    });
  };
}

const dueAt = compileOnce(({ now }: { now: number }) =>
  removals().where('effective_at', '<=', now).orderBy('effective_at').limit(sql.lit(BATCH)),
);

function carryOut(platform: Platform, tx: Tx, { user_id: userId, email, asked_by, reason }: RemovalDetails): void {
  forgetFactorsOf(tx, userId);
  tx.run(query.deleteFrom('sessions').where('user_id', '=', userId));
  recordRemoval(tx, userId, anOperator(reason), 'member.second_factor_removed');
  recordAudit(tx, { userId: asked_by, email: '' }, 'user.second_factor_removed', userId, { email, reason });
  tellFactor(platform, tx, { userId, email }, { kind: 'second_factor_removed', at: tx.now, factor: null, name: '' });
}

function cancel(tx: Tx, { user_id: userId, asked_by }: RemovalDetails): void {
  endRemoval(tx, userId);
  recordRemoval(tx, userId, SYSTEM, 'member.second_factor_removal_cancel');
  const reason = 'the operator who has asked for it is no operator any more';
  recordAudit(tx, { userId: asked_by, email: '' }, 'user.second_factor_removal_cancelled', userId, { reason });
}

function removals() {
  return query
    .selectFrom('factor_removals')
    .innerJoin('users', 'users.id', 'factor_removals.user_id')
    .selectAll('factor_removals')
    .select('users.email');
}
