import { Refusal } from '../../../domain/refusal.js';
import type { Row } from '../../../store/schema.js';
import { compileOnce, query, sql, updateRows } from '../../../store/sql.js';
import type { Tx } from '../../../store/store.js';
import type { Core } from '../../system/platform.js';
import { hashToken } from '../../secrets/tokens.js';

export type DeviceCode = Row<'device_codes'>;

/** Returns what is stored of a code that a person types. */
export function hashUserCode({ encryption }: Pick<Core, 'encryption'>, code: string): Buffer {
  return encryption.authenticate('device.user_code', code);
}

/** Returns the open request with the code that a person has typed. */
export function findByUserCode(core: Core, tx: Tx, code: string): DeviceCode | undefined {
  return tx.get(byUserCode({ hash: hashUserCode(core, code), now: tx.now }));
}

/** Returns the request of the program that has this code; undefined also once it has expired. */
export function findByDeviceCode(tx: Tx, code: string): DeviceCode | undefined {
  return tx.get(byDeviceCode({ hash: hashToken(code), now: tx.now }));
}

/** Returns the request whose code was typed in this session and that is neither approved nor denied. */
export function findTypedIn(tx: Tx, sessionId: string): DeviceCode | undefined {
  return tx.get(typedIn({ sessionId, now: tx.now }));
}

/** Returns the request with this id. Refuses with DEVICE_CODE_INVALID unless {@link findTypedIn} finds it. */
export function getTypedIn(tx: Tx, sessionId: string, id: string): DeviceCode {
  const typed = findTypedIn(tx, sessionId);
  if (typed?.id !== id) throw invalidCode();
  return typed;
}

export function changeCode(tx: Tx, id: string, changes: Partial<DeviceCode>): void {
  tx.run(updateRows('device_codes', changes, { id }));
}

export function invalidCode(): Refusal {
  return new Refusal(
    'DEVICE_CODE_INVALID',
    'no program waits with this code: it is mistyped, or it was used or has expired; let the program show a new one',
  );
}

const byUserCode = compileOnce(({ hash, now }: { hash: Buffer; now: number }) =>
  query
    .selectFrom('device_codes')
    .selectAll()
    .where('user_hash', '=', hash)
    .where('expires_at', '>', now)
    .where('state', '=', sql.lit('pending')),
);

const byDeviceCode = compileOnce(({ hash, now }: { hash: string; now: number }) =>
  query.selectFrom('device_codes').selectAll().where('device_hash', '=', hash).where('expires_at', '>', now),
);

const typedIn = compileOnce(({ sessionId, now }: { sessionId: string; now: number }) =>
  query
    .selectFrom('device_codes')
    .selectAll()
    .where('session_id', '=', sessionId)
    .where('expires_at', '>', now)
    .where('state', '=', sql.lit('pending')),
);
