import type { AccountCaller } from '../../../domain/caller.js';
import { domainOf } from '../../../domain/identity/company.js';
import { Refusal } from '../../../domain/refusal.js';
import { query, rowById } from '../../../store/sql.js';
import type { Tx } from '../../../store/store.js';
import type { Core } from '../../system/platform.js';
import { checkFreshProof } from '../sessions/fresh-proof.js';
import { addIdentity } from './identities.js';
import { getIssuer } from './issuers.js';
import { ShortLived } from './short-lived.js';

/** What a company has just said of the person at a browser, until it is linked to an account. */
export interface AssertedAccount {
  network: string;
  browser: string;
  issuerId: string;
  /** The address of the issuer. */
  issuer: string;
  subject: string;
  email: string;
  /** Whether the company has verified the address; otherwise an operator accepts those of its domain. */
  isVerified: boolean;
  /** The only user whose account it can be linked to. */
  userId: string;
  returnTo: string | undefined;
}

/** What companies have asserted, by the token in the address of a page. */
export interface HasAssertedAccounts {
  assertedAccounts: ShortLived<AssertedAccount>;
}

export function rememberAsserted(core: Core & HasAssertedAccounts, asserted: AssertedAccount): string {
  const token = core.ids.hex(16);
  core.assertedAccounts.put(token, asserted);
  return token;
}

/** Returns what a company has asserted to this browser. Refuses with COMPANY_SIGN_IN_INVALID. */
export function getAsserted(
  core: Core & HasAssertedAccounts,
  token: string,
  browser: string | undefined,
): AssertedAccount {
  const asserted = core.assertedAccounts.get(token, browser);
  if (asserted) return asserted;
  throw new Refusal(
    'COMPANY_SIGN_IN_INVALID',
    "this sign-in was used, has expired, or began in another browser; begin the company's sign-in again",
  );
}

/** Removes an assertion once it is used. */
export function useAsserted(
  core: Core & HasAssertedAccounts,
  tx: Tx,
  token: string,
  { browser }: AssertedAccount,
): void {
  tx.afterCommit(() => core.assertedAccounts.take(token, browser));
}

/** Tells a page what would be linked: the company, its address of the person, and the account here. */
export interface Linkable {
  company: string;
  email: string;
  account: string;
  /** Whether the account can be had without its password: nobody has ever proven that its address is theirs. */
  isClaimable: boolean;
  returnTo: string | undefined;
}

/** Returns what would be linked. Refuses with COMPANY_SIGN_IN_INVALID. */
export function describeAsserted(
  core: Core & HasAssertedAccounts,
  token: string,
  browser: string | undefined,
): Linkable {
  const { issuerId, userId, email, returnTo } = getAsserted(core, token, browser);
  return core.store.transact((tx) => {
    const [issuer, user] = [getIssuer(tx, issuerId), tx.get(rowById('users', userId))];
    const isClaimable = user?.email_verified_at === null && user.is_operator === 0;
    return { company: issuer.name, email, account: user?.email ?? '', isClaimable, returnTo };
  });
}

/**
 * Links what a company has asserted to the account of the caller, who has signed in to it. Returns where to go. Refuses with
 * COMPANY_SIGN_IN_INVALID, COMPANY_SIGN_IN_REFUSED for another account than the one that it was asserted for, IDENTITY_TAKEN,
 * ISSUER_NOT_FOUND, PROOF_REQUIRED and LIMIT_REACHED.
 */
export function linkAsserted(
  core: Core & HasAssertedAccounts,
  caller: AccountCaller,
  { token, browser }: { token: string; browser: string | undefined },
): string | undefined {
  const asserted = getAsserted(core, token, browser);
  checkIsFor(asserted, caller);
  core.store.transact((tx) => {
    checkUnchanged(tx, asserted);
    checkFreshProof(tx, caller);
    addIdentity(tx, caller.userId, asserted);
    noteVerified(tx, caller, asserted);
    useAsserted(core, tx, token, asserted);
  });
  return asserted.returnTo;
}

/** Records that the address of an account is its user's, once a company has said so and the accounts are linked: then nobody can claim it. */
function noteVerified(tx: Tx, { userId, email }: AccountCaller, asserted: AssertedAccount): void {
  if (email.toLowerCase() !== asserted.email.toLowerCase()) return;
  const unverified = query.updateTable('users').set({ email_verified_at: tx.now }).where('id', '=', userId);
  tx.run(unverified.where('email_verified_at', 'is', null));
}

/** Refuses with COMPANY_SIGN_IN_REFUSED another account than the one that an assertion is for. */
export function checkIsFor({ userId, email }: AssertedAccount, caller: AccountCaller): void {
  if (caller.userId === userId) return;
  throw new Refusal(
    'COMPANY_SIGN_IN_REFUSED',
    `you are signed in as ${caller.email}, and this sign-in at the company is for another account: sign out, then sign in as ${email}`,
  );
}

/** Refuses with ISSUER_NOT_FOUND and COMPANY_SIGN_IN_INVALID if the operator has changed the issuer since it has asserted something. */
export function checkUnchanged(tx: Tx, { issuerId, issuer, email, isVerified }: AssertedAccount): void {
  const { url, domains } = getIssuer(tx, issuerId);
  const domain = domains.find((each) => each.domain === domainOf(email));
  if (url === issuer && domain && (isVerified || domain.accept_unverified)) return;
  throw new Refusal('COMPANY_SIGN_IN_INVALID', 'the operator has changed this sign-in meanwhile; begin it again');
}

/** Returns the user whose address a company has asserted to this browser, by the token in the address of a page; undefined: none. */
export function userBeingLinked(
  core: Core & HasAssertedAccounts,
  token: string,
  browser: string | undefined,
): string | undefined {
  return core.assertedAccounts.get(token, browser)?.userId;
}
