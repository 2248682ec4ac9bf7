import type { AccountCaller } from '../../../domain/caller.js';
import { Refusal } from '../../../domain/refusal.js';
import type { Row } from '../../../store/schema.js';
import { compileOnce, insertRow, query, sql, updateRows } from '../../../store/sql.js';
import type { Tx } from '../../../store/store.js';
import { newestFirst, pageOf, type Page, type PageRequest } from '../../system/pages.js';
import type { Core } from '../../system/platform.js';
import { checkFreshProof } from '../sessions/fresh-proof.js';
import { checkLimit } from '../../system/row-limits.js';
import { isPasswordOff } from './password-off.js';

/** A linked account at a company. `issuer_id` and `issuer_name` are null if its issuer was removed. */
export type Identity = Row<'identities'> & { issuer_id: string | null; issuer_name: string | null };

/** Lists the caller's accounts at companies, newest first. */
export function listIdentities(core: Core, { userId }: AccountCaller, request: PageRequest): Page<Identity> {
  return core.store.transact((tx) => {
    const order = newestFirst<Identity>();
    const by = { 'identities.created_at': 'desc', 'identities.id': 'asc' } as const;
    return pageOf(tx, identitiesOf(userId), request, { ...order, by });
  });
}

/**
 * Unlinks an account at a company. Refuses with IDENTITY_NOT_FOUND, PROOF_REQUIRED, and with LAST_SIGN_IN if the caller could not sign in any
 * more.
 */
export function unlinkIdentity(core: Core, caller: AccountCaller, id: string): void {
  const { userId } = caller;
  core.store.transact((tx) => {
    const identities = tx.all(identitiesOf(userId));
    const identity = identities.find((each) => each.id === id);
    if (!identity) throw new Refusal('IDENTITY_NOT_FOUND', 'you have no linked account with this id');
    checkFreshProof(tx, caller);
    const others = identities.filter((each) => each.id !== id && each.issuer_id !== null);
    if (others.length === 0 && !canUsePassword(tx, userId))
      throw new Refusal('LAST_SIGN_IN', 'this is your only way to sign in; link another account first');
    tx.run(query.deleteFrom('identities').where('id', '=', id));
  });
}

function canUsePassword(tx: Tx, userId: string): boolean {
  const user = tx.get(query.selectFrom('users').selectAll().where('id', '=', userId));
  return user !== undefined && user.password_hash !== '' && !isPasswordOff(tx, user);
}

/** Tells whether a user can sign in at a company. */
export function hasCompanySignIn(tx: Tx, userId: string): boolean {
  return tx.all(identitiesOf(userId)).some(({ issuer_id }) => issuer_id !== null);
}

/** Returns the link of an account at a company to an account here. */
export function findIdentity(tx: Tx, issuer: string, subject: string): Row<'identities'> | undefined {
  return tx.get(bySubject({ issuer, subject }));
}

/** Links an account at a company to a user. Refuses with IDENTITY_TAKEN and LIMIT_REACHED. */
export function addIdentity(
  tx: Tx,
  userId: string,
  { issuer, subject, email }: Pick<Row<'identities'>, 'issuer' | 'subject' | 'email'>,
): void {
  if (findIdentity(tx, issuer, subject))
    throw new Refusal('IDENTITY_TAKEN', 'this account at the company is linked to an account already');
  checkLimit(tx, 'identities', query.selectFrom('identities').select('id').where('user_id', '=', userId));
  const identity = { id: tx.id(), user_id: userId, issuer, subject, email };
  tx.run(insertRow('identities', { ...identity, created_at: tx.now, last_used_at: null }));
}

export function noteUse(tx: Tx, { id }: Row<'identities'>): void {
  tx.run(updateRows('identities', { last_used_at: tx.now }, { id }));
}

/** Forgets the accounts at companies of a user who is removed. */
export function forgetIdentitiesOf(tx: Tx, userId: string): void {
  tx.run(query.deleteFrom('identities').where('user_id', '=', userId));
}

function identitiesOf(userId: string) {
  return query
    .selectFrom('identities')
    .leftJoin('issuers', 'issuers.url', 'identities.issuer')
    .selectAll('identities')
    .select(['issuers.id as issuer_id', 'issuers.name as issuer_name'])
    .where('identities.user_id', '=', userId);
}

const bySubject = compileOnce(({ issuer, subject }: { issuer: string; subject: string }) =>
  query
    .selectFrom('identities')
    .selectAll()
    .where('issuer', '=', issuer)
    .where('subject', '=', subject)
    .limit(sql.lit(1)),
);
