import { GUESSES_MS, MOST_GUESSES } from '../../../domain/identity/second-factor.js';
import { Refusal } from '../../../domain/refusal.js';
import { compileOnce, insertRow, query, sql, updateRows } from '../../../store/sql.js';
import type { Tx } from '../../../store/store.js';

/**
 * Counts a code before it is looked at. Refuses with RATE_LIMITED after {@link MOST_GUESSES} wrong ones of a user in an hour, from all
 * addresses together. Only somebody with the password of the user gets so far; a passkey is never counted.
 */
export function countGuess(tx: Tx, userId: string): void {
  const counted = tx.get(guessesOf({ userId }));
  const isOver = counted === undefined || counted.since + GUESSES_MS <= tx.now;
  if (isOver) {
    tx.run(query.deleteFrom('factor_guesses').where('user_id', '=', userId));
    tx.run(insertRow('factor_guesses', { user_id: userId, wrong: 1, since: tx.now }));
    return;
  }
  if (counted.wrong >= MOST_GUESSES) throw tooMany(counted.since + GUESSES_MS - tx.now);
  tx.run(updateRows('factor_guesses', { wrong: counted.wrong + 1 }, { user_id: userId }));
}

/** Takes back what {@link countGuess} has counted: the code was right. Wrong ones before it stay counted. */
export function uncountGuess(tx: Tx, userId: string): void {
  const counted = tx.get(guessesOf({ userId }));
  if (counted) tx.run(updateRows('factor_guesses', { wrong: Math.max(0, counted.wrong - 1) }, { user_id: userId }));
}

/** Forgets counts that are over, at most `most`. Returns how many. */
export function purgeGuesses(tx: Tx, most: number): number {
  const users = tx.all(begunBefore({ before: tx.now - GUESSES_MS, most }));
  for (const { user_id } of users) tx.run(query.deleteFrom('factor_guesses').where('user_id', '=', user_id));
  return users.length;
}

function tooMany(waitMs: number): Refusal {
  const seconds = Math.ceil(waitMs / 1_000);
  const minutes = Math.ceil(seconds / 60);
  return new Refusal(
    'RATE_LIMITED',
    `too many wrong codes for this account; use a passkey, or try again in ${minutes} minutes`,
    { retry_after_seconds: seconds },
  );
}

const begunBefore = compileOnce(({ before, most }: { before: number; most: number }) =>
  query.selectFrom('factor_guesses').select('user_id').where('since', '<=', before).orderBy('since').limit(most),
);

const guessesOf = compileOnce(({ userId }: { userId: string }) =>
  query.selectFrom('factor_guesses').selectAll().where('user_id', '=', userId).limit(sql.lit(1)),
);
