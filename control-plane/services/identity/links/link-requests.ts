import { HOUR_MS, MINUTE_MS } from '../../../../shared/time.js';
import {
  LINKS_A_MINUTE,
  LINKS_AN_HOUR,
  LINK_MS,
  LINK_PREFIX,
  SIGN_UPS_TO_ADDRESS,
  type LinkPurpose,
} from '../../../domain/identity/account-link.js';
import { countNear } from '../../../domain/network.js';
import { Refusal } from '../../../domain/refusal.js';
import { mayTake } from '../../../domain/shared-total.js';
import type { Row } from '../../../store/schema.js';
import { compileOnce, insertRow, query, sql, updateRows } from '../../../store/sql.js';
import type { Tx } from '../../../store/store.js';
import type { Core } from '../../system/platform.js';
import { hashToken } from '../../secrets/tokens.js';

export type LinkRequest = Row<'link_requests'>;
type NewRequest = Pick<LinkRequest, 'purpose' | 'address'> & Partial<LinkRequest>;
type AskedFor = NewRequest & { network: string };

/**
 * Records that somebody wants a link to be mailed to an address. Does the same for every address: whether it has an account is looked up
 * by the next run of `linkSenderOf`. The request does not wake that worker, so that no time after the answer tells it either. Refuses with
 * LIMIT_REACHED after {@link LINKS_AN_HOUR} for an address in an hour, of sign-ups from one wider network or {@link SIGN_UPS_TO_ADDRESS}
 * from all; and with RATE_LIMITED once its part of {@link LINKS_A_MINUTE} for all is used up: see `mayTake`.
 */
export function requestLink(tx: Tx, request: AskedFor): void {
  checkAddress(tx, request);
  checkFlood(tx, request);
  addRequest(tx, request);
}

function checkAddress(tx: Tx, { address, purpose, network }: AskedFor): void {
  const recent = tx.all(recentOf({ address, purpose, since: tx.now - HOUR_MS })).map((row) => row.network);
  const isSignUp = purpose === 'sign_up';
  // A link to a new password helps the owner of the address, whoever has asked for it. A sign-up by a stranger does not.
  const own = isSignUp ? countNear(network, recent) : recent.length;
  const places = { most: SIGN_UPS_TO_ADDRESS, taken: recent.length, held: own };
  if (own < LINKS_AN_HOUR && (!isSignUp || mayTake(places))) return;
  const what = `${LINKS_AN_HOUR} links in an hour are the limit for an e-mail address`;
  const otherwise = isSignUp ? 'try again later or from another network' : 'try again later';
  throw new Refusal('LIMIT_REACHED', `${what}; use the newest one, or ${otherwise}`, { limit: LINKS_AN_HOUR });
}

function checkFlood(tx: Tx, { purpose, network }: AskedFor): void {
  const recent = tx.all(newest({ purpose, since: tx.now - MINUTE_MS })).map((row) => row.network);
  if (mayTake({ most: LINKS_A_MINUTE, taken: recent.length, held: countNear(network, recent) })) return;
  throw new Refusal('RATE_LIMITED', 'too many links are asked for at this moment; try again in a minute', {
    retry_after_seconds: MINUTE_MS / 1_000,
  });
}

/** Writes the row of a request. */
export function addRequest(tx: Tx, request: NewRequest): LinkRequest {
  const nothing = { name: null, password_hash: null, invite_id: null, user_id: null, made_by: null, network: null };
  const times = { created_at: tx.now, expires_at: tx.now + LINK_MS[request.purpose], handled_at: null };
  const row = { id: tx.id(), ...nothing, token_hash: null, tries: 0, ...times, ...request };
  tx.run(insertRow('link_requests', row));
  return row;
}

/** Returns a new token for a link, which only the mail or the answer has. */
export function newLinkToken({ ids }: Pick<Core, 'ids'>, purpose: LinkPurpose): { token: string; token_hash: string } {
  const token = LINK_PREFIX[purpose] + ids.hex(32);
  return { token, token_hash: hashToken(token) };
}

/** Returns the request whose link has this token. Refuses with LINK_INVALID, the same for one that is unknown, used, expired or for something else. */
export function getLink(tx: Tx, purpose: LinkPurpose, token: string): LinkRequest {
  const link = tx.get(byToken({ hash: hashToken(token) }));
  if (link?.purpose !== purpose || link.expires_at <= tx.now) throw invalidLink();
  return link;
}

export function invalidLink(): Refusal {
  return new Refusal('LINK_INVALID', 'this link is wrong, or it was used or has expired; ask for a new one');
}

/** Ends all links of one purpose to an address. Their rows stay for {@link LINKS_AN_HOUR}. */
export function endLinks(tx: Tx, purpose: LinkPurpose, address: string): void {
  const its = query.updateTable('link_requests').set({ token_hash: null, password_hash: null, handled_at: tx.now });
  tx.run(its.where('address', '=', address).where('purpose', '=', purpose));
}

/** Forgets the links of a user who is removed. */
export function forgetLinksOf(tx: Tx, userId: string): void {
  tx.run(query.deleteFrom('link_requests').where('user_id', '=', userId));
}

/** Returns the oldest requests for which no mail was chosen yet, at most `most`. */
export function newRequests(tx: Tx, most: number): LinkRequest[] {
  return tx.all(unhandled({ most }));
}

export function changeRequest(tx: Tx, id: string, changes: Partial<LinkRequest>): void {
  tx.run(updateRows('link_requests', changes, { id }));
}

const recentOf = compileOnce(({ address, purpose, since }: { address: string; purpose: LinkPurpose; since: number }) =>
  query
    .selectFrom('link_requests')
    .select('network')
    .where('address', '=', address)
    .where('purpose', '=', purpose)
    .where('created_at', '>', since)
    .where('made_by', 'is', null)
    .limit(sql.lit(SIGN_UPS_TO_ADDRESS)),
);

const newest = compileOnce(({ purpose, since }: { purpose: LinkPurpose; since: number }) =>
  query
    .selectFrom('link_requests')
    .select('network')
    .where('purpose', '=', purpose)
    .where('created_at', '>', since)
    .where('made_by', 'is', null)
    .limit(sql.lit(LINKS_A_MINUTE)),
);

const byToken = compileOnce(({ hash }: { hash: string }) =>
  query.selectFrom('link_requests').selectAll().where('token_hash', '=', hash),
);

const unhandled = compileOnce(({ most }: { most: number }) =>
  query.selectFrom('link_requests').selectAll().where('handled_at', 'is', null).orderBy('created_at').limit(most),
);
