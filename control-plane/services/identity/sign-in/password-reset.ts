import { anOperator, userActor } from '../../../domain/act.js';
import type { Operator } from '../../../domain/caller.js';
import { Refusal } from '../../../domain/refusal.js';
import { query } from '../../../store/sql.js';
import type { Tx } from '../../../store/store.js';
import { queueMail } from '../../mail/outbox.js';
import { recordAct } from '../../system/acts.js';
import { recordAudit } from '../../system/audit.js';
import type { Core, Platform } from '../../system/platform.js';
import { endFactorRequestsOf } from '../factors/factor-requests.js';
import {
  addRequest,
  endLinks,
  getLink,
  invalidLink,
  newLinkToken,
  requestLink,
  type LinkRequest,
} from '../links/link-requests.js';
import { checkPasswordOn } from '../companies/password-off.js';
import { endPreparedBy } from '../../organizations/prepared.js';
import { noteReset } from '../sessions/sign-in-networks.js';
import { getUser, isOperator, membershipsOf } from '../users/users.js';

/**
 * Lets a link to a new password be mailed, if the address has an account; nothing tells whether it has. Refuses with MAIL_OFF, and with
 * LIMIT_REACHED after three in an hour for an address, and with RATE_LIMITED while too many are asked for.
 */
export function requestPasswordReset({ mail, store }: Platform, email: string, network: string): void {
  if (!mail)
    throw new Refusal('MAIL_OFF', 'this control plane sends no mail: ask its operator for a link to a new password');
  store.transact((tx) => requestLink(tx, { purpose: 'password_reset', address: email, network }));
}

/**
 * Makes, for an operator, a link with which a user sets a new password. Only this answer has its token. The operator's act is in the audit
 * log, and in those of the user's organizations. Refuses with USER_NOT_FOUND and PASSWORD_OFF.
 */
export function makeResetLink(
  core: Core,
  operator: Operator,
  userId: string,
  reason: string,
): { token: string; expiresAt: number } {
  return core.store.transact((tx) => {
    const user = getUser(tx, userId);
    checkPasswordOn(tx, user);
    const { id, email } = user;
    const made = addResetLink(core, tx, user, operator.userId);
    for (const { organization_id } of membershipsOf(tx, id))
      recordAct(tx, organization_id, anOperator(reason), 'member.password_reset', `members/${id}`);
    recordAudit(tx, operator, 'user.password_reset', id, { email, reason });
    return made;
  });
}

/** Adds a link with which a user sets a new password. `madeBy`: the operator who has made it. Only this answer has its token. */
export function addResetLink(
  core: Core,
  tx: Tx,
  { id, email }: { id: string; email: string },
  madeBy: string,
): { token: string; expiresAt: number } {
  const { token, token_hash } = newLinkToken(core, 'password_reset');
  const made = { user_id: id, made_by: madeBy, token_hash, handled_at: tx.now };
  const { expires_at } = addRequest(tx, { purpose: 'password_reset', address: email, ...made });
  return { token, expiresAt: expires_at };
}

/**
 * Sets a new password by a link, and ends all sessions of the user and all links to a new password. Whoever has used a mailed link has
 * proven that the address is theirs. From `network`, the user can then sign in, whatever strangers try elsewhere. Refuses with
 * LINK_INVALID, and with PASSWORD_OFF where the company has switched passwords off.
 */
export async function resetPassword(
  platform: Platform,
  request: { token: string; new_password: string; revoke_api_keys?: boolean },
  network: string,
): Promise<void> {
  const { store, passwords } = platform;
  store.transact((tx) => getResetLink(tx, request.token));
  const password_hash = await passwords.hash(request.new_password);
  store.transact((tx) => {
    const link = getResetLink(tx, request.token);
    const user = getUser(tx, link.user_id ?? '');
    checkPasswordOn(tx, user);
    const email_verified_at = isProof(link) ? tx.now : user.email_verified_at;
    tx.run(query.updateTable('users').set({ password_hash, email_verified_at }).where('id', '=', user.id));
    tx.run(query.deleteFrom('sessions').where('user_id', '=', user.id));
    endFactorRequestsOf(tx, user.id);
    if (request.revoke_api_keys === true) endPreparedBy(tx, userActor(user.id, user.email), user.id);
    endLinks(tx, 'password_reset', link.address);
    noteReset(tx, user.id, network);
    tellChanged(platform, tx, user);
  });
}

/** Refuses with LINK_INVALID also the link of somebody who is no operator any more. */
function getResetLink(tx: Tx, token: string): LinkRequest {
  const link = getLink(tx, 'password_reset', token);
  if (link.made_by !== null && !isOperator(tx, link.made_by)) throw invalidLink();
  return link;
}

function isProof({ made_by }: LinkRequest): boolean {
  return made_by === null;
}

/** Mails the user that the password was changed. */
export function tellChanged(platform: Platform, tx: Tx, { id, email }: { id: string; email: string }): void {
  if (!platform.mail) return;
  const item = { kind: 'password_changed' as const, at: tx.now };
  queueMail(platform, tx, { userId: id, address: email, organizationId: null, about: `password ${tx.id()}`, item });
}
