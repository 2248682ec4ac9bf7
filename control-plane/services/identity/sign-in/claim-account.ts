import { SYSTEM, type Actor } from '../../../domain/act.js';
import { Refusal } from '../../../domain/refusal.js';
import type { Row } from '../../../store/schema.js';
import { query, rowById, sql, updateRows } from '../../../store/sql.js';
import type { Tx } from '../../../store/store.js';
import type { Platform } from '../../system/platform.js';
import { enterAs, type SignedIn } from './sign-in.js';
import { checkUnchanged, getAsserted, useAsserted, type HasAssertedAccounts } from '../companies/asserted-accounts.js';
import { joinByDomain } from './company-sign-in.js';
import type { FactorStep } from './begin-second-step.js';
import { addIdentity, forgetIdentitiesOf } from '../companies/identities.js';
import type { SessionOrigin } from '../sessions/sessions.js';
import { endAccess } from '../operators/remove-user.js';

/** Who ends the memberships of an account that is claimed. */
const BY_CLAIM: Actor = { ...SYSTEM, reason: 'a company has said whose the address of the account is' };

/**
 * Gives the account of an address that nobody has ever confirmed to the person of whom a company says that the address is theirs. Somebody
 * else can have signed up with it before, so nothing that this person knows or has hidden works any longer: the account loses its
 * password, sessions, keys, links, second factors, linked accounts and organizations, and joins like a new account. Refuses with COMPANY_SIGN_IN_INVALID,
 * COMPANY_SIGN_IN_REFUSED for any other account, and LAST_ADMIN while it is the last admin of an organization with instances or a balance.
 */
export function claimAccount(
  platform: Platform & HasAssertedAccounts,
  { token, browser }: { token: string; browser: string | undefined },
  origin: SessionOrigin,
): { next: SignedIn | FactorStep; returnTo: string | undefined } {
  const asserted = getAsserted(platform, token, browser);
  return platform.store.transact((tx) => {
    checkUnchanged(tx, asserted);
    const user = claimable(tx, asserted.userId, asserted.email);
    checkOwnsNothing(tx, user);
    endAccess(tx, user, BY_CLAIM);
    forgetIdentitiesOf(tx, user.id);
    tx.run(updateRows('users', { password_hash: '', email_verified_at: tx.now }, { id: user.id }));
    addIdentity(tx, user.id, asserted);
    joinByDomain(tx, user, origin.network);
    useAsserted(platform, tx, token, asserted);
    return { next: enterAs(platform, tx, user, origin, { issuer: asserted.issuer }), returnTo: asserted.returnTo };
  });
}

/** Operators come from the command line, without a confirmed address: they link by their own sign-in only. */
function claimable(tx: Tx, userId: string, email: string): Row<'users'> {
  const user = tx.get(rowById('users', userId));
  const isSame = user?.email.toLowerCase() === email.toLowerCase();
  if (user && isSame && user.email_verified_at === null && user.is_operator === 0) return user;
  throw new Refusal(
    'COMPANY_SIGN_IN_REFUSED',
    'this account is in use: sign in to it, then link the accounts; ask the operator if you cannot',
  );
}

/** What an organization has must neither be lost by this nor change hands. */
function checkOwnsNothing(tx: Tx, { id }: Row<'users'>): void {
  const own = query
    .selectFrom('memberships')
    .innerJoin('organizations', 'organizations.id', 'memberships.organization_id')
    .select(['organizations.id', 'organizations.name', 'organizations.balance_micro'])
    .where('memberships.user_id', '=', id)
    .where('memberships.role', '=', 'admin');
  for (const organization of tx.all(own)) {
    if (hasOtherAdmin(tx, organization.id) || !ownsSomething(tx, organization)) continue;
    throw new Refusal(
      'LAST_ADMIN',
      `the account is the last admin of "${organization.name}", which has money or instances: sign in to it with its password, or ask the operator`,
    );
  }
}

function hasOtherAdmin(tx: Tx, organizationId: string): boolean {
  const admins = query.selectFrom('memberships').select('user_id').where('organization_id', '=', organizationId);
  return tx.all(admins.where('role', '=', 'admin').limit(2)).length > 1;
}

function ownsSomething(tx: Tx, { id, balance_micro }: { id: string; balance_micro: number }): boolean {
  if (balance_micro > 0) return true;
  const live = query.selectFrom('instances').select('id').where('status', '<>', sql.lit('destroyed'));
  return tx.get(live.where('organization_id', '=', id).limit(1)) !== undefined;
}
