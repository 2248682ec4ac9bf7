import { DAY_MS } from '../../../shared/time.js';
import type { Row } from '../../store/schema.js';
import { compileOnce, query, sql } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import type { Platform } from '../system/platform.js';
import { queueMail } from './outbox.js';

/** The networks of a user that are remembered. */
const MOST_NETWORKS = 20;
const REMEMBERED_MS = 180 * DAY_MS;

/** Mails the user of an account that somebody has signed in to it from a network of which nothing is known. Must be called before the session is opened. */
export function noteSignIn(
  platform: Platform,
  tx: Tx,
  user: Pick<Row<'users'>, 'id' | 'email'>,
  network: string,
): void {
  if (!platform.mail) return;
  if (!isKnown(tx, user.id, network)) {
    const item = { kind: 'sign_in' as const, network, at: tx.now };
    const whose = { userId: user.id, address: user.email, organizationId: null };
    queueMail(platform, tx, { ...whose, about: `sign-in ${tx.id()}`, item });
  }
  noteNetwork(platform, tx, user.id, network);
}

/** Remembers that a user signs in from this network, for half a year after the last time, and the last 20 of a user. */
export function noteNetwork({ mail }: Platform, tx: Tx, userId: string, network: string): void {
  if (!mail) return;
  const row = { user_id: userId, network, seen_at: tx.now };
  const again = { seen_at: tx.now };
  tx.run(
    query
      .insertInto('known_networks')
      .values(row)
      .onConflict((conflict) => conflict.columns(['user_id', 'network']).doUpdateSet(again)),
  );
  const known = tx.all(networksOf({ userId }));
  if (known.length <= MOST_NETWORKS) return;
  const [oldest] = known.filter((each) => each.network !== network).sort((one, other) => one.seen_at - other.seen_at);
  const of = query.deleteFrom('known_networks').where('user_id', '=', userId);
  if (oldest) tx.run(of.where('network', '=', oldest.network));
}

/** Deletes networks that nobody has signed in from for half a year, at most `most`. Returns the number. */
export function purgeNetworks(tx: Tx, most: number): number {
  const found = tx.all(seenBefore({ before: tx.now - REMEMBERED_MS, most }));
  for (const { user_id, network } of found)
    tx.run(query.deleteFrom('known_networks').where('user_id', '=', user_id).where('network', '=', network));
  return found.length;
}

const seenBefore = compileOnce(({ before, most }: { before: number; most: number }) =>
  query
    .selectFrom('known_networks')
    .select(['user_id', 'network'])
    .where('seen_at', '<=', before)
    .orderBy('seen_at')
    .limit(most),
);

function isKnown(tx: Tx, userId: string, network: string): boolean {
  return (
    tx.get(rememberedAs({ userId, network })) !== undefined || tx.get(sessionFrom({ userId, network })) !== undefined
  );
}

const rememberedAs = compileOnce(({ userId, network }: { userId: string; network: string }) =>
  query.selectFrom('known_networks').select('seen_at').where('user_id', '=', userId).where('network', '=', network),
);

/** Sessions that were opened before mail was switched on. */
const sessionFrom = compileOnce(({ userId, network }: { userId: string; network: string }) =>
  query
    .selectFrom('sessions')
    .select('id')
    .where('user_id', '=', userId)
    .where('network', '=', network)
    .limit(sql.lit(1)),
);

const networksOf = compileOnce(({ userId }: { userId: string }) =>
  query.selectFrom('known_networks').select(['network', 'seen_at']).where('user_id', '=', userId),
);
