import { userActor } from '../../../domain/act.js';
import { Refusal } from '../../../domain/refusal.js';
import type { Row } from '../../../store/schema.js';
import type { Tx } from '../../../store/store.js';
import { countSignUpMail } from '../../mail/strangers.js';
import { recordAct } from '../../system/acts.js';
import type { Platform } from '../../system/platform.js';
import { findInvite, joinBy, type InviteDetails } from '../../organizations/invites.js';
import { requestLink } from '../links/link-requests.js';
import { foundOrganization } from '../../organizations/organizations.js';
import { checkDomainHasPasswords } from '../companies/password-off.js';
import { openSession, type SessionOrigin } from '../sessions/sessions.js';
import { addResetLink } from './password-reset.js';
import type { SignedIn } from './sign-in.js';
import { noteNetwork } from '../sessions/sign-in-networks.js';
import { createUser, type NewUser } from '../users/users.js';

export interface SignUp {
  email: string;
  password: string;
  name: string;
  invite_token?: string;
}

/**
 * Creates a user and a session. With an invitation the user joins its organization, otherwise it becomes the admin of a new one. Refuses
 * with INVITATION_REQUIRED, INVITE_NOT_FOUND or EMAIL_TAKEN, checked in this order: a stranger without an invitation must not learn which
 * addresses have accounts. Refuses with PASSWORD_OFF where a company has switched passwords off. With mail, nobody learns it: returns null
 * for every address, and mails a link. Refuses with LIMIT_REACHED after three of them in an hour, and after a hundred sign-ups from a
 * network in a day; and with RATE_LIMITED.
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

/**
 * Creates a user that is an operator. Without a password, returns the token of a link with which the user sets one. Only the command line
 * calls this. Refuses with EMAIL_TAKEN.
 */
export async function createOperator(
  platform: Platform,
  { email, password }: { email: string; password: string | null },
): Promise<{ token: string } | null> {
  const passwordHash = await platform.passwords.hash(password ?? platform.ids.hex(32));
  return platform.store.transact((tx) => {
    const id = tx.id();
    const name = email.split('@')[0] ?? email;
    createUser(tx, id, { email, name, passwordHash, isOperator: true, email_verified_at: null });
    foundOrganization(tx, id, 'Operators');
    return password === null ? addResetLink(platform, tx, { id, email }, id) : null;
  });
}
