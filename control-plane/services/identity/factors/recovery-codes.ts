import { RECOVERY_CODES } from '../../../domain/identity/second-factor.js';
import { compileOnce, insertRow, query } from '../../../store/sql.js';
import type { Tx } from '../../../store/store.js';
import type { Core } from '../../system/platform.js';
import { hashToken } from '../../secrets/tokens.js';

/** 80 bits: nobody guesses one, so a fast hash is enough. */
const CODE_BYTES = 10;

/** Makes ten recovery codes of a user, instead of those before. Only this answer has them: four times five hexadecimal digits each. */
export function makeRecoveryCodes({ ids }: Pick<Core, 'ids'>, tx: Tx, userId: string): string[] {
  forgetRecoveryCodes(tx, userId);
  return Array.from({ length: RECOVERY_CODES }, () => {
    const digits = ids.hex(CODE_BYTES);
    tx.run(insertRow('recovery_codes', { user_id: userId, code_hash: hashToken(digits) }));
    return (digits.match(/.{5}/g) ?? []).join('-');
  });
}

/** Uses up a recovery code, with or without its dashes. Returns false if it is none of the user, or was used. */
export function useRecoveryCode(tx: Tx, userId: string, code: string): boolean {
  const hash = hashToken(code.toLowerCase().replace(/[^0-9a-f]/g, ''));
  return tx.run(query.deleteFrom('recovery_codes').where('user_id', '=', userId).where('code_hash', '=', hash)) > 0;
}

export function forgetRecoveryCodes(tx: Tx, userId: string): void {
  tx.run(query.deleteFrom('recovery_codes').where('user_id', '=', userId));
}

/** Returns how many recovery codes of a user are left. */
export function countRecoveryCodes(tx: Tx, userId: string): number {
  return tx.all(codesOf({ userId })).length;
}

const codesOf = compileOnce(({ userId }: { userId: string }) =>
  query.selectFrom('recovery_codes').select('code_hash').where('user_id', '=', userId),
);
