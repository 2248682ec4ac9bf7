import {
  DEVICE_CODE_LIMITS,
  DEVICE_CODE_MS,
  POLL_INTERVAL_S,
  shownCode,
  userCodeFrom,
} from '../../../domain/identity/device-code.js';
import { countNear } from '../../../domain/network.js';
import { Refusal } from '../../../domain/refusal.js';
import { mayTake } from '../../../domain/shared-total.js';
import { compileOnce, insertRow, query, sql } from '../../../store/sql.js';
import type { Tx } from '../../../store/store.js';
import type { Core } from '../../system/platform.js';
import { hashUserCode } from './device-codes.js';
import type { SessionOrigin } from '../sessions/sessions.js';
import { hashToken } from '../../secrets/tokens.js';

/** The codes of a program that wants to sign in. Only this answer has them; the database has hashes. */
export interface NewDeviceCode {
  /** `dev_` and 64 hexadecimal digits, for the program alone. */
  deviceCode: string;
  /** XXXX-XXXX, for the person to type. */
  userCode: string;
  expiresInS: number;
  /** How many seconds to wait between two questions. */
  intervalS: number;
}

/**
 * Begins the sign-in of a program that calls its session `name`. Refuses with RATE_LIMITED while too many codes of its network, or of all
 * networks, are open: see `mayTake`.
 */
export function requestDeviceCode(core: Core, name: string, { network, device }: SessionOrigin): NewDeviceCode {
  const deviceCode = `dev_${core.ids.hex(32)}`;
  return core.store.transact((tx) => {
    checkOpenCodes(tx, network);
    const userCode = unusedCode(core, tx);
    tx.run(
      insertRow('device_codes', {
        id: tx.id(),
        device_hash: hashToken(deviceCode),
        user_hash: hashUserCode(core, userCode),
        name,
        device,
        network,
        state: 'pending',
        user_id: null,
        session_id: null,
        created_at: tx.now,
        expires_at: tx.now + DEVICE_CODE_MS,
      }),
    );
    const times = { expiresInS: DEVICE_CODE_MS / 1_000, intervalS: POLL_INTERVAL_S };
    return { deviceCode, userCode: shownCode(userCode), ...times };
  });
}

function unusedCode(core: Core, tx: Tx): string {
  for (;;) {
    const code = userCodeFrom(core.ids.hex(16));
    if (!tx.get(withUserCode({ hash: hashUserCode(core, code) }))) return code;
  }
}

function checkOpenCodes(tx: Tx, network: string): void {
  const codes = tx.all(open({ now: tx.now })).map((code) => code.network);
  const ofNetwork = codes.filter((other) => other === network).length;
  const places = { most: DEVICE_CODE_LIMITS.ofAll, taken: codes.length, held: countNear(network, codes) };
  if (ofNetwork < DEVICE_CODE_LIMITS.ofNetwork && mayTake(places)) return;
  throw new Refusal('RATE_LIMITED', 'too many programs wait for an approval; try again in a minute', {
    retry_after_seconds: 60,
  });
}

const open = compileOnce(({ now }: { now: number }) =>
  query
    .selectFrom('device_codes')
    .select('network')
    .where('expires_at', '>', now)
    .limit(sql.lit(DEVICE_CODE_LIMITS.ofAll)),
);

const withUserCode = compileOnce(({ hash }: { hash: Buffer }) =>
  query.selectFrom('device_codes').select('id').where('user_hash', '=', hash),
);
