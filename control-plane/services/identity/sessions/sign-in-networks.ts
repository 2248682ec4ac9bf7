import { DAY_MS } from '../../../../shared/time.js';
import type { Row } from '../../../store/schema.js';
import { compileOnce, query, sql, updateRows } from '../../../store/sql.js';
import type { Tx } from '../../../store/store.js';
import { queueMail } from '../../mail/outbox.js';
import type { Core, Platform } from '../../system/platform.js';

/** The networks of a user that are remembered. */
const MOST_NETWORKS = 20;
const REMEMBERED_MS = 180 * DAY_MS;
/** To save writes, the time of a network is stored only once it is older than this. */
const SEEN_GRAIN_MS = DAY_MS;

type KnownNetwork = Row<'known_networks'>;

/**
 * Remembers that a user has signed in from this network, and mails it to the user if nothing was known of the network. Must be called
 * before the session is opened.
 */
export function noteSignIn(
  platform: Platform,
  tx: Tx,
  user: Pick<Row<'users'>, 'id' | 'email'>,
  network: string,
): void {
  if (platform.mail && !hasSignedInFrom(tx, user.id, network)) {
    const item = { kind: 'sign_in' as const, network, at: tx.now };
    const whose = { userId: user.id, address: user.email, organizationId: null };
    queueMail(platform, tx, { ...whose, about: `sign-in ${tx.id()}`, item });
  }
  noteNetwork(tx, user.id, network);
}

/** Remembers that a user signs in from this network, for half a year after the last time, and the last 20 networks of a user. */
export function noteNetwork(tx: Tx, userId: string, network: string): void {
  remember(tx, { user_id: userId, network, seen_at: tx.now, has_signed_in: 1 });
}

/** Remembers that a user has set a new password by a link in this network. The first sign-in from there is mailed all the same. */
export function noteReset(tx: Tx, userId: string, network: string): void {
  remember(tx, { user_id: userId, network, seen_at: tx.now, has_signed_in: 0 });
}

function remember(tx: Tx, row: KnownNetwork): void {
  const { user_id, network } = row;
  const known = tx.get(rememberedAs({ userId: user_id, network }));
  if (!known) {
    tx.run(query.insertInto('known_networks').values(row));
    forgetOldest(tx, row);
    return;
  }
  const has_signed_in = known.has_signed_in === 1 ? 1 : row.has_signed_in;
  if (known.has_signed_in === has_signed_in && known.seen_at > tx.now - SEEN_GRAIN_MS) return;
  tx.run(updateRows('known_networks', { seen_at: tx.now, has_signed_in }, { user_id, network }));
}

function forgetOldest(tx: Tx, { user_id, network }: KnownNetwork): void {
  const known = tx.all(networksOf({ userId: user_id }));
  if (known.length <= MOST_NETWORKS) return;
  const [oldest] = known.filter((each) => each.network !== network).sort((one, other) => one.seen_at - other.seen_at);
  const of = query.deleteFrom('known_networks').where('user_id', '=', user_id);
  if (oldest) tx.run(of.where('network', '=', oldest.network));
}

/**
 * Tells whether the user with an e-mail address has signed in or set a new password from this network. Strangers who try passwords from
 * elsewhere must not lock the user out there. It is one statement for every address, so that its time does not tell who has an account.
 */
export function isKnownNetwork({ store }: Core, email: string, network: string): boolean {
  return store.transact((tx) => tx.get(knownTo({ email, network, now: tx.now })) !== undefined);
}

/** Deletes networks that nobody has signed in from for half a year, at most `most`. Returns the number. */
export function purgeNetworks(tx: Tx, most: number): number {
  const found = tx.all(seenBefore({ before: tx.now - REMEMBERED_MS, most }));
  for (const { user_id, network } of found)
    tx.run(query.deleteFrom('known_networks').where('user_id', '=', user_id).where('network', '=', network));
  return found.length;
}

function hasSignedInFrom(tx: Tx, userId: string, network: string): boolean {
  return tx.get(rememberedAs({ userId, network }))?.has_signed_in === 1 || hasSessionFrom(tx, userId, network);
}

/** Sessions are looked at, too: earlier releases remember no networks without a mail server. */
function hasSessionFrom(tx: Tx, userId: string, network: string): boolean {
  return tx.get(sessionFrom({ userId, network, now: tx.now })) !== undefined;
}

const knownTo = compileOnce(({ email, network, now }: { email: string; network: string; now: number }) =>
  query
    .selectFrom('users')
    .select('users.id')
    .where('email', '=', email)
    .where((where) =>
      where.or([
        where.exists(
          where
            .selectFrom('known_networks')
            .select('seen_at')
            .whereRef('known_networks.user_id', '=', 'users.id')
            .where('known_networks.network', '=', network),
        ),
        where.exists(
          where
            .selectFrom('sessions')
            .select('sessions.id')
            .whereRef('sessions.user_id', '=', 'users.id')
            .where('sessions.network', '=', network)
            .where('sessions.expires_at', '>', now),
        ),
      ]),
    ),
);

const seenBefore = compileOnce(({ before, most }: { before: number; most: number }) =>
  query
    .selectFrom('known_networks')
    .select(['user_id', 'network'])
    .where('seen_at', '<=', before)
    .orderBy('seen_at')
    .limit(most),
);

const rememberedAs = compileOnce(({ userId, network }: { userId: string; network: string }) =>
  query.selectFrom('known_networks').selectAll().where('user_id', '=', userId).where('network', '=', network),
);

const sessionFrom = compileOnce(({ userId, network, now }: { userId: string; network: string; now: number }) =>
  query
    .selectFrom('sessions')
    .select('id')
    .where('user_id', '=', userId)
    .where('network', '=', network)
    .where('expires_at', '>', now)
    .limit(sql.lit(1)),
);

const networksOf = compileOnce(({ userId }: { userId: string }) =>
  query.selectFrom('known_networks').select(['network', 'seen_at']).where('user_id', '=', userId),
);
