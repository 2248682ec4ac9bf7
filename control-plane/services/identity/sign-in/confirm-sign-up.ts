import { LINK_TRIES } from '../../../domain/identity/account-link.js';
import { Refusal } from '../../../domain/refusal.js';
import type { Row } from '../../../store/schema.js';
import { query } from '../../../store/sql.js';
import type { Tx } from '../../../store/store.js';
import type { Platform } from '../../system/platform.js';
import { createAccount } from './sign-up.js';
import type { SignedIn } from './sign-in.js';
import { inviteNotFound } from '../../organizations/invites.js';
import { changeRequest, endLinks, getLink, invalidLink, type LinkRequest } from '../links/link-requests.js';
import { checkDomainHasPasswords } from '../companies/password-off.js';
import { openSession, type SessionOrigin } from '../sessions/sessions.js';
import { noteNetwork } from '../sessions/sign-in-networks.js';

/**
 * Creates the account of a sign-up whose address is confirmed by the link that was mailed to it, and opens a session. The password of the
 * sign-up is asked for again: somebody else can have signed up with the address. Refuses with LINK_INVALID, also after five wrong
 * passwords, with INVALID_CREDENTIALS, and with INVITE_NOT_FOUND and EMAIL_TAKEN for what has changed since the sign-up.
 */
export async function confirmSignUp(
  platform: Platform,
  { token, password }: { token: string; password: string },
  origin: SessionOrigin,
): Promise<SignedIn> {
  const { store, passwords } = platform;
  const tried = store.transact((tx) => tryOnce(tx, token));
  if (!(await passwords.verify(password, tried.password_hash ?? undefined)))
    throw new Refusal('INVALID_CREDENTIALS', 'this is not the password of the sign-up');
  return store.transact((tx) => {
    const request = getLink(tx, 'sign_up', token);
    checkDomainHasPasswords(tx, request.address);
    const invite = inviteOf(platform, tx, request);
    const { address: email, name, password_hash } = request;
    if (name === null || password_hash === null) throw invalidLink();
    const account = { email, name, passwordHash: password_hash, isOperator: false, email_verified_at: tx.now };
    const { user, organization } = createAccount(tx, account, invite, origin.network);
    endLinks(tx, 'sign_up', email);
    noteNetwork(tx, user.id, origin.network);
    return { ...openSession(platform, tx, user.id, origin), user, organization };
  });
}

/** Counts a try before the password is looked at, so that many at once count, too. */
function tryOnce(tx: Tx, token: string): LinkRequest {
  const request = getLink(tx, 'sign_up', token);
  if (request.tries >= LINK_TRIES) throw invalidLink();
  changeRequest(tx, request.id, { tries: request.tries + 1 });
  return request;
}

function inviteOf({ signUpMode }: Platform, tx: Tx, { invite_id, address }: LinkRequest): Row<'invites'> | undefined {
  if (invite_id === null) {
    if (signUpMode !== 'open')
      throw new Refusal('INVITATION_REQUIRED', 'new accounts need an invitation: sign up again with its token');
    return undefined;
  }
  const its = query.selectFrom('invites').selectAll().where('id', '=', invite_id).where('email', '=', address);
  const invite = tx.get(its.where('expires_at', '>', tx.now));
  if (!invite) throw inviteNotFound();
  return invite;
}
