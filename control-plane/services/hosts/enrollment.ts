import type { Operator } from '../../domain/caller.js';
import { Refusal } from '../../domain/refusal.js';
import type { Inventory } from '../../../shared/gen/gpurent/agent/v1/agent.js';
import type { Row } from '../../store/schema.js';
import { query } from '../../store/sql.js';
import { recordAudit } from '../audit.js';
import { judgeInventory } from './host-judgement.js';
import { saveInventory } from './inventory.js';
import type { Platform } from '../platform.js';
import { hashToken } from '../accounts/tokens.js';

export type EnrollmentTokenDetails = Row<'enrollment_tokens'>;

const HOUR_MS = 60 * 60 * 1000;

/** Operators: a token with which `maxUses` hosts may enrol; shown once, stored as a hash. */
export function createEnrollmentToken(
  platform: Platform,
  operator: Operator,
  request: { max_uses: number; expires_in_hours: number },
): Row<'enrollment_tokens'> & { token: string } {
  const token = `enr_${platform.ids.hex(24)}`;
  return platform.store.transact((tx) => {
    const row: Row<'enrollment_tokens'> = {
      id: platform.ids.uuid(),
      token_hash: hashToken(token),
      max_uses: request.max_uses,
      uses: 0,
      created_at: tx.now,
      expires_at: tx.now + request.expires_in_hours * HOUR_MS,
      revoked_at: null,
    };
    tx.run(query.insertInto('enrollment_tokens').values(row));
    recordAudit(tx, operator, 'enrollment_token.create', row.id, request);
    return { ...row, token };
  });
}

/** Operators: tokens, newest first; never the secrets. */
export function listEnrollmentTokens(platform: Platform): Row<'enrollment_tokens'>[] {
  return platform.store.transact((tx) =>
    tx.all(query.selectFrom('enrollment_tokens').selectAll().orderBy('created_at', 'desc').orderBy('id')),
  );
}

/** Operators: no further host may enrol with the token; those that have stay. Refuses with NOT_FOUND. */
export function revokeEnrollmentToken(platform: Platform, operator: Operator, id: string): void {
  platform.store.transact((tx) => {
    const changed = tx.run(
      query
        .updateTable('enrollment_tokens')
        .set({ revoked_at: tx.now })
        .where('id', '=', id)
        .where('revoked_at', 'is', null),
    );
    if (changed === 0) throw new Refusal('NOT_FOUND', 'no enrollment token that is still valid has this id');
    recordAudit(tx, operator, 'enrollment_token.revoke', id);
  });
}

/**
 * Makes a host of whoever holds a valid token. The credential is in this answer and nowhere else.
 * Refuses with TOKEN_INVALID, the same for an unknown, spent, expired and revoked token, and with VALIDATION_FAILED.
 */
export function enrollHost(
  platform: Platform,
  token: string,
  inventory: Inventory,
): { hostId: string; credential: string } {
  judgeInventory(inventory);
  const credential = `agt_${platform.ids.hex(32)}`;
  return platform.store.transact((tx) => {
    const used = tx.run(
      query
        .updateTable('enrollment_tokens')
        .set((eb) => ({ uses: eb('uses', '+', 1) }))
        .where('token_hash', '=', hashToken(token))
        .where('expires_at', '>', tx.now)
        .where('revoked_at', 'is', null)
        .whereRef('uses', '<', 'max_uses'),
    );
    if (used === 0) {
      throw new Refusal(
        'TOKEN_INVALID',
        'the enrollment token is unknown, used up, expired or revoked; ask the operator for a new one',
      );
    }
    const hostId = platform.ids.uuid();
    saveInventory(tx, { id: hostId, credentialHash: hashToken(credential), enrolledAt: tx.now }, inventory);
    return { hostId, credential };
  });
}

/** The machine that a credential belongs to, unless it was removed. */
export function findMachineByCredential(platform: Platform, credential: string): Row<'machines'> | undefined {
  return platform.store.transact((tx) =>
    tx.get(
      query
        .selectFrom('machines')
        .selectAll()
        .where('credential_hash', '=', hashToken(credential))
        .where('removed_at', 'is', null),
    ),
  );
}
