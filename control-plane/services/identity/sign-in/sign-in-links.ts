import type { AccountCaller } from '../../../domain/caller.js';
import { MINUTE_MS } from '../../../../shared/time.js';
import { rowById } from '../../../store/sql.js';
import type { Tx } from '../../../store/store.js';
import type { Core, Platform } from '../../system/platform.js';
import { firstOrganization } from '../users/users.js';
import type { SignedIn } from './sign-in.js';
import { checkFreshProof } from '../sessions/fresh-proof.js';
import { invalidLink } from '../links/link-requests.js';
import type { HasSessionLinks } from '../sessions/session-links.js';
import { openSession, vouchedIn, type SessionOrigin } from '../sessions/sessions.js';
import { noteSignIn } from '../sessions/sign-in-networks.js';
import { hashToken } from '../../secrets/tokens.js';

export const SIGN_IN_LINK_MS = 10 * MINUTE_MS;
const PREFIX = 'sgn_';

/**
 * Makes a link with which a browser signs in as the caller, once, within ten minutes. A session has one link at a time, and the link ends
 * with its session, with a new password, and when all other sessions are ended. Only this answer has the token. Nobody can make one for somebody else. Refuses with PROOF_REQUIRED.
 */
export function makeSignInLink(
  core: Core & HasSessionLinks,
  caller: AccountCaller,
): { token: string; expiresAt: number } {
  core.store.transact((tx) => checkFreshProof(tx, caller));
  const token = PREFIX + core.ids.hex(32);
  const endsAt = core.clock.monotonic() + SIGN_IN_LINK_MS;
  core.sessionLinks.set(caller.sessionId, { hash: hashToken(token), endsAt });
  return { token, expiresAt: core.clock.now() + SIGN_IN_LINK_MS };
}

/**
 * Opens a session by a link. It has no proof of who its user is, and has given a second factor only if the session has that made the link.
 * Refuses with LINK_INVALID, the same for a link that is unknown, used or expired, and for one whose session has ended.
 */
export function signInByLink(platform: Platform & HasSessionLinks, token: string, origin: SessionOrigin): SignedIn {
  return platform.store.transact((tx) => {
    const maker = getMaker(tx, takeLink(platform, token));
    const user = tx.get(rowById('users', maker.user_id));
    if (!user) throw invalidLink();
    noteSignIn(platform, tx, user, origin.network);
    const proof = { provenAt: null, factorAt: maker.factor_at, vouched: vouchedIn(maker) };
    const session = openSession(platform, tx, user.id, origin, proof);
    return { ...session, user, organization: firstOrganization(tx, user.id) ?? null };
  });
}

/** Returns the id of the session that made the link, and ends the link. */
function takeLink(core: Core & HasSessionLinks, token: string): string {
  const hash = hashToken(token);
  for (const [sessionId, link] of core.sessionLinks.entries()) {
    if (link.hash !== hash) continue;
    core.sessionLinks.delete(sessionId);
    if (link.endsAt > core.clock.monotonic()) return sessionId;
  }
  throw invalidLink();
}

function getMaker(tx: Tx, sessionId: string) {
  const session = tx.get(rowById('sessions', sessionId));
  if (!session || session.expires_at <= tx.now) throw invalidLink();
  return session;
}
