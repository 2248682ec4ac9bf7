import { Refusal } from '../../../domain/refusal.js';
import type { FactorKind } from '../../../domain/identity/second-factor.js';
import { compileOnce, query, sql, updateRows } from '../../../store/sql.js';
import type { Tx } from '../../../store/store.js';
import type { Core, Platform } from '../../system/platform.js';
import { countGuess, uncountGuess } from './factor-guesses.js';
import { verifyUse, type PasskeyAnswer } from './passkeys.js';
import { useRecoveryCode } from './recovery-codes.js';
import { stepOf } from './totp.js';

/** A second factor as its user gives it: one of these. */
export interface FactorAnswer {
  /** Six digits of an authenticator app. */
  code?: string;
  recovery_code?: string;
  passkey?: PasskeyAnswer;
}

/**
 * Looks at the second factor that a user gives. Returns what uses it up, within the transaction of what it allows: each answer is taken
 * once. `challenge` is what a passkey was asked to sign. Refuses with FACTOR_INVALID, and with RATE_LIMITED after too many wrong codes.
 */
export async function examineFactor(
  platform: Platform,
  userId: string,
  { code, recovery_code, passkey }: FactorAnswer,
  challenge: string | null,
): Promise<(tx: Tx) => void> {
  if (passkey) {
    if (challenge === null) throw wrongFactor();
    return verifyUse(platform, userId, passkey, challenge);
  }
  platform.store.transact((tx) => countGuess(tx, userId));
  return (tx) => {
    const isRight =
      code === undefined ? useRecoveryCode(tx, userId, recovery_code ?? '') : useCode(platform, tx, userId, code);
    if (!isRight) throw wrongFactor();
    uncountGuess(tx, userId);
  };
}

/** Uses up a code of an authenticator app, and every earlier one. Returns false if it is not the code of this time, or was used. */
function useCode({ encryption }: Core, tx: Tx, userId: string, code: string): boolean {
  for (const { id, secret_encrypted, last_step } of tx.all(totpsOf({ userId }))) {
    if (secret_encrypted === null || last_step === null) continue;
    // Null: its secret is lost.
    const secret = encryption.decrypt('totp.secret', secret_encrypted) as string | null;
    const step = secret === null ? undefined : stepOf(secret, code, tx.now);
    if (step === undefined || step <= last_step) continue;
    tx.run(updateRows('second_factors', { last_step: step, last_used_at: tx.now }, { id }));
    return true;
  }
  return false;
}

export function wrongFactor(): Refusal {
  return new Refusal(
    'FACTOR_INVALID',
    'this code is wrong, or it was used already; wait for the next one of your authenticator app, or use a recovery code',
  );
}

/** Returns which kinds of second factors a user has. */
export function kindsOf(tx: Tx, userId: string): FactorKind[] {
  return [...new Set(tx.all(factorKindsOf({ userId })).map(({ kind }) => kind))];
}

/** Returns the ids of a user's passkeys, as browsers know them. */
export function passkeysOf(tx: Tx, userId: string): string[] {
  return tx.all(credentialsOf({ userId })).flatMap(({ credential_id }) => credential_id ?? []);
}

const totpsOf = compileOnce(({ userId }: { userId: string }) =>
  query.selectFrom('second_factors').selectAll().where('user_id', '=', userId).where('kind', '=', sql.lit('totp')),
);

const factorKindsOf = compileOnce(({ userId }: { userId: string }) =>
  query.selectFrom('second_factors').select('kind').where('user_id', '=', userId).orderBy('created_at'),
);

const credentialsOf = compileOnce(({ userId }: { userId: string }) =>
  query
    .selectFrom('second_factors')
    .select('credential_id')
    .where('user_id', '=', userId)
    .where('kind', '=', sql.lit('passkey')),
);
