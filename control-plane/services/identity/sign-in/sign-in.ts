import { Refusal } from '../../../domain/refusal.js';
import type { Row } from '../../../store/schema.js';
import { query } from '../../../store/sql.js';
import type { Tx } from '../../../store/store.js';
import type { Core, Platform } from '../../system/platform.js';
import { beginFactorStep, type FactorStep } from './begin-second-step.js';
import { hasFactor } from '../sessions/fresh-proof.js';
import { checkPasswordOn } from '../companies/password-off.js';
import { openSession, vouchedNow, type SessionOrigin } from '../sessions/sessions.js';
import { noteSignIn } from '../sessions/sign-in-networks.js';
import { findUserByEmail, firstOrganization, type OwnOrganization } from '../users/users.js';

export interface SignedIn {
  /** `ses_` and 64 hexadecimal digits; shown once, stored as a hash. */
  token: string;
  expiresAt: number;
  user: Row<'users'>;
  /** The organization that the user joined first; null for a user without one. */
  organization: OwnOrganization | null;
}

/**
 * Opens a session; for a user with a second factor only begins the step that asks for it. Refuses an unknown address and a wrong password
 * alike, with INVALID_CREDENTIALS, and a right one with PASSWORD_OFF if the company has switched passwords off: only the right password
 * tells that there is a second factor. `linking`: the user whose address a company has just asserted to this browser, and who needs the
 * password once more to link the accounts.
 */
export async function signIn(
  platform: Platform,
  request: { email: string; password: string },
  origin: SessionOrigin,
  linking?: string,
): Promise<SignedIn | FactorStep> {
  const { store, passwords } = platform;
  const user = store.transact((tx) => findUserByEmail(tx, request.email));
  const matches = await passwords.verify(request.password, passwordOf(user));
  if (!user || !matches) throw new Refusal('INVALID_CREDENTIALS', 'the e-mail address or the password is wrong');
  return store.transact((tx) => {
    checkUnchanged(tx, user);
    // Whoever does not know the password must not learn that this address has an account.
    if (user.id !== linking) checkPasswordOn(tx, user);
    return enterAs(platform, tx, user, origin);
  });
}

/** Returns the stored hash of a user's password; undefined, which costs as much to verify: the user has none. */
export function passwordOf(user: Row<'users'> | undefined): string | undefined {
  return user?.password_hash === '' ? undefined : user?.password_hash;
}

/**
 * Opens a session for a user who has proven who it is, or begins the step that asks for a second factor. `issuer`: the address of the
 * issuer that has said who it is; null: none.
 */
export function enterAs(
  platform: Platform,
  tx: Tx,
  user: Row<'users'>,
  origin: SessionOrigin,
  { provenAt = tx.now, issuer = null }: { provenAt?: number; issuer?: string | null } = {},
): SignedIn | FactorStep {
  if (hasFactor(tx, user.id)) return beginFactorStep(platform, tx, user.id, issuer);
  noteSignIn(platform, tx, user, origin.network);
  const organization = firstOrganization(tx, user.id) ?? null;
  return {
    ...openSession(platform, tx, user.id, origin, { provenAt, vouched: vouchedNow(tx, issuer) }),
    user,
    organization,
  };
}

/** Refuses with INVALID_CREDENTIALS if the password was changed while it was being checked. */
export function checkUnchanged(tx: Tx, { id, password_hash }: Row<'users'>): void {
  const now = tx.get(query.selectFrom('users').select('password_hash').where('id', '=', id));
  if (now?.password_hash !== password_hash) {
    throw new Refusal('INVALID_CREDENTIALS', 'the password was changed during this request; sign in again');
  }
}

export function signOut(core: Core, sessionId: string): void {
  core.store.transact((tx) => tx.run(query.deleteFrom('sessions').where('id', '=', sessionId)));
}
