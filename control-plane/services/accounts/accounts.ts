import { userActor } from '../../domain/act.js';
import type { AccountCaller, Role } from '../../domain/caller.js';
import { Refusal } from '../../domain/refusal.js';
import type { Row } from '../../store/schema.js';
import { query } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import { findInvite, joinBy, type InviteDetails } from './invites.js';
import { foundOrganization } from './organizations.js';
import { countSignUpMail } from '../mail/strangers.js';
import { recordAct } from '../system/acts.js';
import type { Platform } from '../system/platform.js';
import { checkDomainHasPasswords, checkPasswordOn } from './password-off.js';
import { endFactorRequestsOf } from './factor-requests.js';
import { beginFactorStep, type FactorStep } from './factor-step.js';
import { checkProofWithFactor, hasFactor } from './fresh-proof.js';
import { endLinks, requestLink } from './link-requests.js';
import { tellChanged } from './password-reset.js';
import { endPreparedBy } from './prepared.js';
import { endSessionsBut, openSession, type SessionOrigin } from './sessions.js';
import { noteNetwork, noteSignIn } from './sign-in-networks.js';

export interface SignedIn {
  /** `ses_` and 64 hexadecimal digits; shown once, stored as a hash. */
  token: string;
  expiresAt: number;
  user: Row<'users'>;
  /** The organization that the user joined first; null for a user without one. */
  organization: (Row<'organizations'> & { role: Role }) | null;
}

export interface SignUp {
  email: string;
  password: string;
  name: string;
  invite_token?: string;
}

/**
 * Creates a user and a session. With an invitation the user joins its organization, otherwise it becomes the admin of a new one.
 * Refuses with INVITATION_REQUIRED, INVITE_NOT_FOUND or EMAIL_TAKEN, checked in this order: a stranger without an invitation
 * must not learn which addresses have accounts. Refuses with PASSWORD_OFF where a company has switched passwords off. With mail, nobody learns it: returns null for every address, and mails a link. Refuses
 * with LIMIT_REACHED after three of them in an hour, and after a hundred sign-ups from a network in a day; and with RATE_LIMITED.
 */
export async function signUp(platform: Platform, request: SignUp, origin: SessionOrigin): Promise<SignedIn | null> {
  const { store, mail } = platform;
  store.transact((tx) => checkInvited(platform, tx, request));
  const passwordHash = await platform.passwords.hash(request.password);
  return store.transact((tx) => {
    const invite = checkInvited(platform, tx, request);
    const { email, name } = request;
    if (mail) {
      const invite_id = invite?.id ?? null;
      const { network } = origin;
      requestLink(tx, { purpose: 'sign_up', address: email, name, password_hash: passwordHash, invite_id, network });
      countSignUpMail(tx, email, network);
      return null;
    }
    const account = createAccount(
      tx,
      { email, name, passwordHash, isOperator: false, email_verified_at: null },
      invite,
      origin.network,
    );
    noteNetwork(tx, account.user.id, origin.network);
    return { ...openSession(platform, tx, account.user.id, origin), ...account };
  });
}

/** Creates a user, who joins the organization of an invitation or becomes the admin of a new one. Refuses with EMAIL_TAKEN. */
export function createAccount(
  tx: Tx,
  account: NewUser,
  invite: InviteDetails | undefined,
  network: string,
): Pick<SignedIn, 'user' | 'organization'> {
  const user = createUser(tx, tx.id(), account);
  const organization: SignedIn['organization'] = invite
    ? joinBy(tx, invite, user.id)
    : { ...foundOrganization(tx, user.id, `${account.name}'s organization`), role: 'admin' };
  recordSignUp(tx, user, organization, invite, network);
  return { user, organization };
}

/** Records what a sign-up did in the organization. Since the password was hashed, only the network of its request is known. */
function recordSignUp(
  tx: Tx,
  { id, email }: Row<'users'>,
  organization: { id: string },
  invite: InviteDetails | undefined,
  network: string,
): void {
  const by = userActor(id, email);
  if (invite) recordAct(tx, organization.id, by, 'invite.accept', `invites/${invite.id}`, null, network);
  else recordAct(tx, organization.id, by, 'organization.create', `orgs/${organization.id}`, null, network);
}

function checkInvited({ signUpMode }: Platform, tx: Tx, { email, invite_token }: SignUp): InviteDetails | undefined {
  checkDomainHasPasswords(tx, email);
  if (invite_token !== undefined) return findInvite(tx, invite_token, email);
  if (signUpMode === 'open') return undefined;
  throw new Refusal('INVITATION_REQUIRED', 'new accounts need an invitation: send its token as invite_token');
}

/** Creates a user that is an operator. Only the command line calls this. Refuses with EMAIL_TAKEN. */
export async function createOperator(platform: Platform, request: { email: string; password: string }): Promise<void> {
  const passwordHash = await platform.passwords.hash(request.password);
  platform.store.transact((tx) => {
    const name = request.email.split('@')[0] ?? request.email;
    const id = tx.id();
    createUser(tx, id, { email: request.email, name, passwordHash, isOperator: true, email_verified_at: null });
    foundOrganization(tx, id, 'Operators');
  });
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
  const user = store.transact((tx) => tx.get(query.selectFrom('users').selectAll().where('email', '=', request.email)));
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
function passwordOf(user: Row<'users'> | undefined): string | undefined {
  return user?.password_hash === '' ? undefined : user?.password_hash;
}

/** Opens a session for a user who has proven who it is, or begins the step that asks for a second factor. */
export function enterAs(
  platform: Platform,
  tx: Tx,
  user: Row<'users'>,
  origin: SessionOrigin,
  provenAt = tx.now,
): SignedIn | FactorStep {
  if (hasFactor(tx, user.id)) return beginFactorStep(platform, tx, user.id);
  noteSignIn(platform, tx, user, origin.network);
  const organization = firstOrganization(tx, user.id) ?? null;
  return { ...openSession(platform, tx, user.id, origin, { provenAt }), user, organization };
}

/** Refuses with INVALID_CREDENTIALS if the password was changed while it was being checked. */
export function checkUnchanged(tx: Tx, { id, password_hash }: Row<'users'>): void {
  const now = tx.get(query.selectFrom('users').select('password_hash').where('id', '=', id));
  if (now?.password_hash !== password_hash) {
    throw new Refusal('INVALID_CREDENTIALS', 'the password was changed during this request; sign in again');
  }
}

/**
 * Sets a new password and ends every other session of the user, all links to a new password, and what was begun with second factors; with
 * `revoke_api_keys` also every API key and every invitation that the user has made, in any organization. Refuses with INVALID_CREDENTIALS
 * and PASSWORD_OFF, and a user with a second factor with PROOF_REQUIRED.
 */
export async function changePassword(
  platform: Platform,
  caller: AccountCaller,
  request: { current_password: string; new_password: string; revoke_api_keys?: boolean },
): Promise<void> {
  const { store, passwords } = platform;
  const { user } = describeUser(platform, caller.userId);
  if (!(await passwords.verify(request.current_password, passwordOf(user)))) {
    throw new Refusal('INVALID_CREDENTIALS', 'the current password is wrong');
  }
  const password_hash = await passwords.hash(request.new_password);
  store.transact((tx) => {
    checkUnchanged(tx, user);
    checkPasswordOn(tx, user);
    checkProofWithFactor(tx, caller);
    tx.run(query.updateTable('users').set({ password_hash }).where('id', '=', user.id));
    endSessionsBut(platform, tx, caller);
    endFactorRequestsOf(tx, user.id);
    endLinks(tx, 'password_reset', user.email);
    if (request.revoke_api_keys === true) endPreparedBy(tx, userActor(user.id, user.email), user.id);
    tellChanged(platform, tx, user);
  });
}

export function signOut(platform: Platform, sessionId: string): void {
  platform.store.transact((tx) => tx.run(query.deleteFrom('sessions').where('id', '=', sessionId)));
}

interface NewUser {
  email: string;
  name: string;
  passwordHash: string;
  isOperator: boolean;
  email_verified_at: number | null;
}

export function createUser(tx: Tx, id: string, user: NewUser): Row<'users'> {
  const taken = tx.get(query.selectFrom('users').select('id').where('email', '=', user.email));
  if (taken) throw new Refusal('EMAIL_TAKEN', 'an account with this e-mail address exists; sign in instead');
  const row: Row<'users'> = {
    id,
    email: user.email,
    name: user.name,
    password_hash: user.passwordHash,
    is_operator: user.isOperator ? 1 : 0,
    created_at: tx.now,
    email_verified_at: user.email_verified_at,
  };
  tx.run(query.insertInto('users').values(row));
  return row;
}

/** Returns the organization that a user joined first; undefined: the user belongs to none. */
export function firstOrganization(tx: Tx, userId: string): SignedIn['organization'] | undefined {
  return tx.get(
    query
      .selectFrom('memberships')
      .innerJoin('organizations', 'organizations.id', 'memberships.organization_id')
      .selectAll('organizations')
      .select('memberships.role')
      .where('memberships.user_id', '=', userId)
      .orderBy('memberships.joined_at')
      .orderBy('organizations.id')
      .limit(1),
  );
}

export interface Membership {
  organizationId: string;
  name: string;
  role: Role;
}

/** Returns the signed-in user and its memberships, oldest first. Refuses with TOKEN_INVALID when the user does not exist. */
export function describeUser(platform: Platform, userId: string): { user: Row<'users'>; memberships: Membership[] } {
  return platform.store.transact((tx) => {
    const user = tx.get(query.selectFrom('users').selectAll().where('id', '=', userId));
    if (!user) throw new Refusal('TOKEN_INVALID', 'this session belongs to no user');
    const memberships = tx.all(
      query
        .selectFrom('memberships')
        .innerJoin('organizations', 'organizations.id', 'memberships.organization_id')
        .select(['organizations.id as organizationId', 'organizations.name', 'memberships.role'])
        .where('memberships.user_id', '=', userId)
        .orderBy('memberships.joined_at')
        .orderBy('organizations.id'),
    );
    return { user, memberships };
  });
}
