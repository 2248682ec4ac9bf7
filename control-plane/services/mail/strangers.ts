import { DAY_MS } from '../../../shared/time.js';
import { STRANGER_LIMITS } from '../../domain/mail/mail.js';
import { Refusal } from '../../domain/refusal.js';
import type { Row } from '../../store/schema.js';
import { compileOnce, insertRow, query, rowById, sql } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';

type CountedMail = Row<'mails_to_strangers'>;

/**
 * Counts an invitation that a user mails to an address, if {@link STRANGER_LIMITS} allow it. Returns whether they do. It counts for a day,
 * also if the invitation or its organization is gone by then.
 */
export function countInviteMail(
  tx: Tx,
  { userId, address, network }: { userId: string; address: string; network: string | null },
): boolean {
  const isKnown = isKnownSender(tx, userId);
  const since = tx.now - DAY_MS;
  const { unknownSender, knownSender, toOne, toOneFromUnknown } = STRANGER_LIMITS;
  const most = isKnown ? knownSender : unknownSender;
  if (tx.all(sentBy({ userId, since, most })).length >= most) return false;
  const others = tx.all(invitesTo({ address: address.toLowerCase(), since }));
  const fromUnknown = others.filter(({ is_known }) => is_known === 0);
  if (others.length >= toOne || (!isKnown && fromUnknown.length >= toOneFromUnknown)) return false;
  if (isBusy(tx, 'invite', network)) return false;
  count(tx, { kind: 'invite', user_id: userId, is_known: isKnown ? 1 : 0, address, network });
  return true;
}

/**
 * Counts the mail that a sign-up sends to the address that it names, which can be anybody's. Refuses with LIMIT_REACHED when as many came
 * from its network in a day, the same for every address.
 */
export function countSignUpMail(tx: Tx, address: string, network: string): void {
  const limit = STRANGER_LIMITS.network;
  if (isBusy(tx, 'sign_up', network))
    throw new Refusal(
      'LIMIT_REACHED',
      `${limit} accounts a day are the limit for your network; try again tomorrow, or from another network`,
      { limit },
    );
  count(tx, { kind: 'sign_up', user_id: null, is_known: 0, address, network });
}

/** Deletes counts that are older than a day, at most `most`. Returns the number. */
export function purgeCountedMails(tx: Tx, most: number): number {
  const old = query
    .selectFrom('mails_to_strangers')
    .select('id')
    .where('created_at', '<=', tx.now - DAY_MS);
  const ids = tx.all(old.orderBy('created_at').limit(most)).map(({ id }) => id);
  if (ids.length > 0) tx.run(query.deleteFrom('mails_to_strangers').where('id', 'in', ids));
  return ids.length;
}

/**
 * Tells whether a user has a confirmed address and administers or pays for an organization that has paid, or was given credit by an
 * operator. Operators are known.
 */
function isKnownSender(tx: Tx, userId: string): boolean {
  const user = tx.get(rowById('users', userId));
  if (user?.is_operator === 1) return true;
  return user?.email_verified_at != null && tx.get(paidBy({ userId })) !== undefined;
}

function isBusy(tx: Tx, kind: CountedMail['kind'], network: string | null): boolean {
  if (network === null) return false;
  return tx.all(sentFrom({ kind, network, since: tx.now - DAY_MS })).length >= STRANGER_LIMITS.network;
}

function count(tx: Tx, mail: Omit<CountedMail, 'id' | 'created_at'>): void {
  const address = mail.address.toLowerCase();
  tx.run(insertRow('mails_to_strangers', { id: tx.id(), ...mail, address, created_at: tx.now }));
}

const sentBy = compileOnce(({ userId, since, most }: { userId: string; since: number; most: number }) =>
  query
    .selectFrom('mails_to_strangers')
    .select('id')
    .where('user_id', '=', userId)
    .where('created_at', '>', since)
    .limit(most),
);

const invitesTo = compileOnce(({ address, since }: { address: string; since: number }) =>
  query
    .selectFrom('mails_to_strangers')
    .select('is_known')
    .where('address', '=', address)
    .where('kind', '=', sql.lit('invite'))
    .where('created_at', '>', since)
    .limit(sql.lit(STRANGER_LIMITS.toOne)),
);

const sentFrom = compileOnce(({ kind, network, since }: { kind: string; network: string; since: number }) =>
  query
    .selectFrom('mails_to_strangers')
    .select('id')
    .where('network', '=', network)
    .where('kind', '=', kind as CountedMail['kind'])
    .where('created_at', '>', since)
    .limit(sql.lit(STRANGER_LIMITS.network)),
);

const paidBy = compileOnce(({ userId }: { userId: string }) =>
  query
    .selectFrom('memberships')
    .innerJoin('transactions', 'transactions.organization_id', 'memberships.organization_id')
    .select('transactions.id')
    .where('memberships.user_id', '=', userId)
    .where('memberships.role', 'in', [sql.lit('admin' as const), sql.lit('billing' as const)])
    .where('transactions.kind', 'in', [sql.lit('payment' as const), sql.lit('credit' as const)])
    .where('transactions.amount_micro', '>', 0)
    .limit(sql.lit(1)),
);
