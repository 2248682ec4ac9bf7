import { DAY_MS, HOUR_MS } from '../../../../shared/time.js';
import type { AccountCaller } from '../../../domain/caller.js';
import { endOfVouched, type Vouched } from '../../../domain/identity/company-session.js';
import { Refusal } from '../../../domain/refusal.js';
import type { Row } from '../../../store/schema.js';
import { compileOnce, insertRow, query, rowById, updateRows } from '../../../store/sql.js';
import { StoreUnavailable, type Tx } from '../../../store/store.js';
import { newestFirst, pageOf, type Page, type PageRequest } from '../../system/pages.js';
import type { Core, Platform } from '../../system/platform.js';
import { LIMITS } from '../../system/row-limits.js';
import type { HasSessionLinks } from './session-links.js';
import { hashToken } from '../../secrets/tokens.js';

const SESSION_MS = 30 * DAY_MS;
/** The end of a session moves with each use. To save writes, it is stored only once it has moved by this much. */
const SLIDE_GRAIN_MS = HOUR_MS;
const PREFIX = 'ses_';

/** Where a session is opened. */
export interface SessionOrigin {
  /** The network of the client's address: see `networkOf`. */
  network: string;
  /** What the client says of itself, in the words of `deviceOf`. */
  device: string | null;
  /** What a program calls the session that it has asked for; absent: a person has signed in. */
  name?: string;
}

/**
 * Opens a session, which ends 30 days after its last use. A user has at most {@link LIMITS}.sessions; one more ends those that were not
 * used for the longest time. The token is `ses_` and 64 hexadecimal digits; only this answer has it. `provenAt`: when its
 * user has last proven who it is, by default now; null: never in this session. `factorAt`: when with a second factor. `vouched`: the issuer
 * that has opened it, which also can end it earlier; null: none.
 */
export function openSession(
  platform: Pick<Platform, 'ids' | 'lastUsed'>,
  tx: Tx,
  userId: string,
  { network, device, name = null }: Omit<SessionOrigin, 'name'> & { name?: string | null },
  {
    provenAt = tx.now,
    factorAt = null,
    vouched = null,
  }: { provenAt?: number | null; factorAt?: number | null; vouched?: Vouched | null } = {},
): { token: string; expiresAt: number } {
  const token = PREFIX + platform.ids.hex(32);
  const expiresAt = endAfterUse(tx.now, vouched?.endsAt ?? null);
  makeRoom(platform, tx, userId);
  tx.run(
    insertRow('sessions', {
      id: platform.ids.uuid(),
      user_id: userId,
      token_hash: hashToken(token),
      created_at: tx.now,
      expires_at: expiresAt,
      network,
      device,
      name,
      last_used_at: null,
      last_network: null,
      proven_at: provenAt,
      factor_at: factorAt,
      issuer: vouched?.issuer ?? null,
      vouched_at: vouched?.vouchedAt ?? null,
      ends_at: vouched?.endsAt ?? null,
    }),
  );
  return { token, expiresAt };
}

/** Returns when a session ends that is used now: 30 days later, unless it has an end that no use moves. */
function endAfterUse(now: number, endsAt: number | null): number {
  return Math.min(now + SESSION_MS, endsAt ?? Infinity);
}

/** Returns what an issuer says now of the user of a session; null: the session is of no issuer. */
export function vouchedNow(tx: Tx, issuer: string | null, vouchedAt = tx.now): Vouched | null {
  if (issuer === null) return null;
  const hours = tx.get(hoursAt({ issuer }))?.session_hours ?? null;
  return { issuer, vouchedAt, endsAt: endOfVouched(vouchedAt, hours) };
}

/**
 * Returns which issuer has opened a session; null: none. A session that is opened by another one, as that of a program, has the same
 * issuer and the same end: otherwise each could open the next one, and nobody would ask the issuer again.
 */
export function vouchedIn({
  issuer,
  vouched_at,
  ends_at,
}: Pick<Row<'sessions'>, 'issuer' | 'vouched_at' | 'ends_at'>): Vouched | null {
  return issuer === null || vouched_at === null ? null : { issuer, vouchedAt: vouched_at, endsAt: ends_at };
}

/** Lets a session last again as long as its issuer's sessions do, because the issuer has just signed in its user. */
export function renewSession(tx: Tx, id: string, issuer: string): void {
  const vouched = vouchedNow(tx, issuer);
  const ends_at = vouched?.endsAt ?? null;
  tx.run(updateRows('sessions', { vouched_at: tx.now, ends_at, expires_at: endAfterUse(tx.now, ends_at) }, { id }));
}

const hoursAt = compileOnce(({ issuer }: { issuer: string }) =>
  query.selectFrom('issuers').select('session_hours').where('url', '=', issuer),
);

function makeRoom({ lastUsed }: Pick<Platform, 'lastUsed'>, tx: Tx, userId: string): void {
  const sessions = tx.all(sessionsOf({ userId }));
  const tooMany = sessions.length + 1 - LIMITS.sessions;
  if (tooMany <= 0) return;
  const usedAt = (row: Row<'sessions'>) => lastUsed.latestOfSession(row.id)?.at ?? storedUseOf(row);
  const idle = sessions.map((row) => ({ id: row.id, at: usedAt(row) })).sort((one, other) => one.at - other.at);
  for (const { id } of idle.slice(0, tooMany)) tx.run(query.deleteFrom('sessions').where('id', '=', id));
}

/** Returns when a session was last used, by its row. Of one that is older than the column `last_used_at`, its end tells it to the hour. */
function storedUseOf({ created_at, last_used_at, expires_at }: Row<'sessions'>): number {
  return last_used_at ?? Math.max(created_at, expires_at - SESSION_MS);
}

const sessionsOf = compileOnce(({ userId }: { userId: string }) =>
  query.selectFrom('sessions').selectAll().where('user_id', '=', userId),
);

export interface SessionDetails {
  id: string;
  /** What the program calls it that has asked for it; null: a person has signed in. */
  name: string | null;
  device: string | null;
  /** The network of the last use, or of the sign-in; null: unknown. */
  network: string | null;
  created_at: number;
  last_used_at: number;
  /** Whether the caller uses this session. */
  isCurrent: boolean;
}

/** Lists the sessions of the caller that have not expired, newest first. */
export function listSessions(platform: Platform, caller: AccountCaller, request: PageRequest): Page<SessionDetails> {
  const { items, ...rest } = platform.store.transact((tx) => {
    const own = query.selectFrom('sessions').selectAll().where('user_id', '=', caller.userId);
    return pageOf(tx, own.where('expires_at', '>', tx.now), request, newestFirst());
  });
  const sessions = items.map((row) => {
    const use = platform.lastUsed.latestOfSession(row.id);
    return {
      id: row.id,
      name: row.name,
      device: row.device,
      created_at: row.created_at,
      network: use?.network ?? row.last_network ?? row.network,
      last_used_at: use?.at ?? storedUseOf(row),
      isCurrent: row.id === caller.sessionId,
    };
  });
  return { ...rest, items: sessions };
}

/** Returns the network from which a session was last used; undefined: it has ended. */
export function networkOfSession({ lastUsed }: Pick<Platform, 'lastUsed'>, tx: Tx, id: string): string | undefined {
  const row = tx.get(rowById('sessions', id));
  return lastUsed.latestOfSession(id)?.network ?? row?.last_network ?? row?.network ?? undefined;
}

/** Ends a session of the caller, also the one that it uses. Refuses with SESSION_NOT_FOUND. */
export function endSession(core: Core, caller: AccountCaller, id: string): void {
  core.store.transact((tx) => {
    const ended = tx.run(query.deleteFrom('sessions').where('id', '=', id).where('user_id', '=', caller.userId));
    if (ended === 0) throw new Refusal('SESSION_NOT_FOUND', 'you have no session with this id');
  });
}

/** Ends every session of the caller but the one that it uses. Returns how many. */
export function endOtherSessions(core: Core & HasSessionLinks, caller: AccountCaller): number {
  return core.store.transact((tx) => endSessionsBut(core, tx, caller));
}

/**
 * Ends every session of a user but one, and takes back what was approved and linked in that one: a program or a browser could still
 * open a session by it. Returns how many.
 */
export function endSessionsBut(
  core: HasSessionLinks,
  tx: Tx,
  { userId, sessionId }: Pick<AccountCaller, 'userId' | 'sessionId'>,
): number {
  tx.afterCommit(() => core.sessionLinks.delete(sessionId));
  tx.run(query.deleteFrom('device_codes').where('session_id', '=', sessionId));
  return tx.run(query.deleteFrom('sessions').where('user_id', '=', userId).where('id', '<>', sessionId));
}

export interface FoundSession {
  id: string;
  userId: string;
  email: string;
  is_operator: 0 | 1;
  expires_at: number;
  factor_at: number | null;
  issuer: string | null;
  vouched_at: number | null;
  ends_at: number | null;
}

/** Returns the session with this hash of its token, which can have expired, or undefined. */
export function findSession(tx: Tx, hash: string): FoundSession | undefined {
  return tx.get(
    query
      .selectFrom('sessions')
      .innerJoin('users', 'users.id', 'sessions.user_id')
      .select([
        'sessions.id',
        'sessions.expires_at',
        'sessions.factor_at',
        'sessions.issuer',
        'sessions.vouched_at',
        'sessions.ends_at',
        'users.id as userId',
        'users.email',
        'users.is_operator',
      ])
      .where('token_hash', '=', hash),
  );
}

/**
 * Moves the end of a session that was used. If the database cannot be written, a later use does it, because requests that only
 * read must still work.
 */
export function prolongSession({ store, clock }: Core, session: FoundSession): void {
  const expires_at = endAfterUse(clock.now(), session.ends_at);
  if (session.expires_at >= expires_at - SLIDE_GRAIN_MS) return;
  try {
    store.transact((tx) => tx.run(query.updateTable('sessions').set({ expires_at }).where('id', '=', session.id)));
  } catch (error) {
    if (!(error instanceof StoreUnavailable)) throw error;
  }
}
