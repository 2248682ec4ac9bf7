import type { AccountCaller } from '../../../domain/caller.js';
import type { FactorKind } from '../../../domain/identity/second-factor.js';
import { Refusal } from '../../../domain/refusal.js';
import type { Row } from '../../../store/schema.js';
import { compileOnce, insertRow, query, rowById } from '../../../store/sql.js';
import type { Tx } from '../../../store/store.js';
import type { Encryption } from '../../secrets/encryption.js';
import { newestFirst, pageOf, type Page, type PageRequest } from '../../system/pages.js';
import type { Core, Platform } from '../../system/platform.js';
import { checkFreshProof, hasFactor, noteProof } from '../sessions/fresh-proof.js';
import { endFactorRequestsOf } from './factor-requests.js';
import { kindsOf } from './give-factor.js';
import { tellFactor } from './factor-mails.js';
import { checkLimit } from '../../system/row-limits.js';
import { countRecoveryCodes, forgetRecoveryCodes, makeRecoveryCodes } from './recovery-codes.js';

export type SecondFactor = Pick<Row<'second_factors'>, 'id' | 'kind' | 'name' | 'created_at' | 'last_used_at'>;

/** A removal of all factors of a user that an operator has asked for. */
export type FactorRemoval = Row<'factor_removals'>;

/** Lists the second factors of the caller, newest first. */
export function listFactors(core: Core, caller: AccountCaller, request: PageRequest): Page<SecondFactor> {
  const own = query
    .selectFrom('second_factors')
    .select(['id', 'kind', 'name', 'created_at', 'last_used_at'])
    .where('user_id', '=', caller.userId);
  return core.store.transact((tx) => pageOf(tx, own, request, newestFirst()));
}

/** Returns how many recovery codes the caller has left, and the removal that an operator has asked for. */
export function describeFactors(
  core: Core,
  { userId }: AccountCaller,
): { codesLeft: number; removal: FactorRemoval | undefined } {
  return core.store.transact((tx) => ({
    codesLeft: countRecoveryCodes(tx, userId),
    removal: tx.get(removalOf({ userId })),
  }));
}

/** Returns which kinds of second factors the caller has. */
export function factorKinds(core: Core, { userId }: AccountCaller): FactorKind[] {
  return core.store.transact((tx) => kindsOf(tx, userId));
}

/** A factor that was added; with the first one come recovery codes, which only this answer has. */
export interface AddedFactor {
  factor: SecondFactor;
  recoveryCodes: string[] | null;
}

type NewFactor = Pick<Row<'second_factors'>, 'kind' | 'name'> & Partial<Row<'second_factors'>>;

/**
 * Adds a factor that the caller has just used. Where it is the first, other sessions of the user have to prove again who uses them: they
 * have given no second factor. Tells the user by mail. Refuses with LIMIT_REACHED.
 */
export function addFactor(platform: Platform, tx: Tx, caller: AccountCaller, added: NewFactor): AddedFactor {
  const { userId, sessionId } = caller;
  checkLimit(tx, 'secondFactors', query.selectFrom('second_factors').select('id').where('user_id', '=', userId));
  const isFirst = !hasFactor(tx, userId);
  const totp = { secret_encrypted: null, last_step: null };
  const passkey = { credential_id: null, public_key: null, counter: null };
  const used = { created_at: tx.now, last_used_at: tx.now };
  const row = { id: tx.id(), user_id: userId, ...totp, ...passkey, ...used, ...added };
  tx.run(insertRow('second_factors', row));
  if (isFirst) {
    const others = query.updateTable('sessions').set({ proven_at: null }).where('user_id', '=', userId);
    tx.run(others.where('id', '<>', sessionId));
  }
  noteProof(tx, caller, true);
  tellFactor(platform, tx, caller, { kind: 'second_factor_added', at: tx.now, factor: row.kind, name: row.name });
  return { factor: row, recoveryCodes: isFirst ? makeRecoveryCodes(platform, tx, userId) : null };
}

/**
 * Removes a factor of the caller. With the last one go the recovery codes. Tells the user by mail. Refuses with FACTOR_NOT_FOUND and
 * PROOF_REQUIRED.
 */
export function removeFactor(platform: Platform, caller: AccountCaller, id: string): void {
  platform.store.transact((tx) => {
    const factor = tx.get(rowById('second_factors', id));
    if (factor?.user_id !== caller.userId)
      throw new Refusal('FACTOR_NOT_FOUND', 'you have no second factor with this id');
    checkFreshProof(tx, caller);
    tx.run(query.deleteFrom('second_factors').where('id', '=', id));
    if (!hasFactor(tx, caller.userId)) forgetFactorsOf(tx, caller.userId);
    const { kind, name } = factor;
    tellFactor(platform, tx, caller, { kind: 'second_factor_removed', at: tx.now, factor: kind, name });
  });
}

/** Makes ten recovery codes of the caller, instead of those before. Refuses with FACTOR_NOT_FOUND and PROOF_REQUIRED. */
export function renewRecoveryCodes(core: Core, caller: AccountCaller): string[] {
  return core.store.transact((tx) => {
    if (!hasFactor(tx, caller.userId))
      throw new Refusal(
        'FACTOR_NOT_FOUND',
        'you have no second factor, so recovery codes are of no use; add one first',
      );
    checkFreshProof(tx, caller);
    return makeRecoveryCodes(core, tx, caller.userId);
  });
}

/** Removes every factor of a user, and what belongs to them: recovery codes, what was begun, and that sessions have given one. */
export function forgetFactorsOf(tx: Tx, userId: string): void {
  tx.run(query.deleteFrom('second_factors').where('user_id', '=', userId));
  forgetRecoveryCodes(tx, userId);
  endFactorRequestsOf(tx, userId);
  tx.run(query.deleteFrom('factor_removals').where('user_id', '=', userId));
  const sessions = query.updateTable('sessions').set({ factor_at: null });
  tx.run(sessions.where('user_id', '=', userId).where('factor_at', 'is not', null));
}

/** Makes authenticator apps useless whose secrets were encrypted with a lost key: passkeys and recovery codes still work. */
export function forgetTotpSecrets(tx: Tx, encryption: Encryption): void {
  const secret_encrypted = encryption.encrypt('totp.secret', null);
  const kind: FactorKind = 'totp';
  tx.run(query.updateTable('second_factors').set({ secret_encrypted }).where('kind', '=', kind));
  tx.run(query.deleteFrom('factor_requests').where('secret_encrypted', 'is not', null));
}

const removalOf = compileOnce(({ userId }: { userId: string }) =>
  query.selectFrom('factor_removals').selectAll().where('user_id', '=', userId),
);
