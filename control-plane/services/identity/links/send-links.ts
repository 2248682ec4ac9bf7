import type { Row } from '../../../store/schema.js';
import type { Tx } from '../../../store/store.js';
import { queueMail } from '../../mail/outbox.js';
import type { Platform } from '../../system/platform.js';
import { findUserByEmail } from '../users/users.js';
import { hasCompanySignIn } from '../companies/identities.js';
import { changeRequest, newLinkToken, newRequests, type LinkRequest } from './link-requests.js';
import { isPasswordOff } from '../companies/password-off.js';

/** Requests that one run looks at. */
const BATCH = 50;

/**
 * Makes the worker that mails the links that were asked for, to those who may have them: a new password only to an account, and to confirm
 * a new account only an address without one. Returns how many requests it has looked at.
 */
export function linkSenderOf(platform: Platform): () => { links: number } {
  return () =>
    platform.store.transact((tx) => {
      const requests = newRequests(tx, BATCH);
      for (const request of requests) sendLink(platform, tx, request);
      if (requests.length === BATCH) tx.nudge('account-links');
      return { links: requests.length };
    });
}

/** A user who signs in only at a company gets no password by a link. If its issuer was removed, the link is the way back. */
function mayReset(tx: Tx, user: Row<'users'>): boolean {
  return !isPasswordOff(tx, user) && (user.password_hash !== '' || !hasCompanySignIn(tx, user.id));
}

function sendLink(platform: Platform, tx: Tx, request: LinkRequest): void {
  const { id, purpose, address } = request;
  changeRequest(tx, id, { handled_at: tx.now });
  if (!platform.mail) return;
  const user = findUserByEmail(tx, address);
  const mail = { userId: user?.id ?? null, address, organizationId: null, about: `link ${id}` };
  if (purpose === 'sign_up' && user) {
    changeRequest(tx, id, { password_hash: null });
    queueMail(platform, tx, { ...mail, item: { kind: 'sign_up_exists' } });
    return;
  }
  if (purpose === 'password_reset' && !(user && mayReset(tx, user))) return;
  const { token, token_hash } = newLinkToken(platform, purpose);
  const item = { kind: purpose, token, expires_at: request.expires_at };
  if (queueMail(platform, tx, { ...mail, item })) changeRequest(tx, id, { token_hash, user_id: user?.id ?? null });
}
