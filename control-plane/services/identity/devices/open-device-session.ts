import type { Clock } from '../../../../shared/clock.js';
import { recent } from '../../../../shared/recent.js';
import { DEVICE_CODE_LIMITS, POLL_INTERVAL_S } from '../../../domain/identity/device-code.js';
import { Refusal } from '../../../domain/refusal.js';
import type { Row } from '../../../store/schema.js';
import { query, rowById } from '../../../store/sql.js';
import type { Tx } from '../../../store/store.js';
import type { Platform } from '../../system/platform.js';
import { firstOrganization } from '../users/users.js';
import type { Vouched } from '../../../domain/identity/company-session.js';
import type { SignedIn } from '../sign-in/sign-in.js';
import { findByDeviceCode, type DeviceCode } from './device-codes.js';
import { openSession, vouchedIn, type SessionOrigin } from '../sessions/sessions.js';
import { noteSignIn } from '../sessions/sign-in-networks.js';

/**
 * Opens the session of a program once its code is approved, once: the code is of no use afterwards. Refuses with EXPIRED_TOKEN, the same for
 * a code that is unknown, used or expired, with SLOW_DOWN, ACCESS_DENIED and AUTHORIZATION_PENDING, checked in this order.
 */
export function openDeviceSession(
  platform: Platform & { pollPace: PollPace },
  deviceCode: string,
  origin: SessionOrigin,
): SignedIn {
  return platform.store.transact((tx) => {
    const code = findByDeviceCode(tx, deviceCode);
    if (!code) throw new Refusal('EXPIRED_TOKEN', 'this code is wrong, or it was used or has expired; begin again');
    platform.pollPace.note(code.id);
    const { user, ...proof } = approverOf(tx, code);
    tx.run(query.deleteFrom('device_codes').where('id', '=', code.id));
    noteSignIn(platform, tx, user, origin.network);
    const organization = firstOrganization(tx, user.id) ?? null;
    const named = { ...origin, name: code.name };
    const session = openSession(platform, tx, user.id, named, { provenAt: null, ...proof });
    return { ...session, user, organization };
  });
}

/**
 * Returns who has approved a code, as long as the session lasts in which that was done, and when a second factor was given in it; null:
 * never. `vouched`: the issuer that has opened that session.
 */
function approverOf(
  tx: Tx,
  { state, session_id }: DeviceCode,
): { user: Row<'users'>; factorAt: number | null; vouched: Vouched | null } {
  if (state === 'pending')
    throw new Refusal('AUTHORIZATION_PENDING', `nobody has approved this yet; ask again in ${POLL_INTERVAL_S} s`);
  const session = tx.get(rowById('sessions', session_id ?? ''));
  const user = session && session.expires_at > tx.now ? tx.get(rowById('users', session.user_id)) : undefined;
  if (state === 'approved' && session && user)
    return { user, factorAt: session.factor_at, vouched: vouchedIn(session) };
  throw new Refusal('ACCESS_DENIED', 'this was denied; begin again if that was a mistake');
}

/** Programs ask at most a second earlier than they were told to, because answers take different times. */
const GRACE_MS = 1_000;
const LONGEST_INTERVAL_S = 60;

/** When programs have last asked about their codes. It is in memory, because a refused request writes nothing; a restart forgets it. */
export class PollPace {
  private readonly polls = recent<{ at: number; intervalS: number }>(DEVICE_CODE_LIMITS.ofAll);

  constructor(private readonly clock: Clock) {}

  /** Refuses with SLOW_DOWN a program that asks too soon, and lets it wait for five seconds longer from then on. */
  note(id: string): void {
    const at = this.clock.monotonic();
    const last = this.polls.get(id);
    if (!last || at - last.at >= last.intervalS * 1_000 - GRACE_MS) {
      this.polls.set(id, { at, intervalS: last?.intervalS ?? POLL_INTERVAL_S });
      return;
    }
    const intervalS = Math.min(last.intervalS + POLL_INTERVAL_S, LONGEST_INTERVAL_S);
    this.polls.set(id, { at, intervalS });
    throw new Refusal('SLOW_DOWN', `this program asks too often; ask again in ${intervalS} s`, { interval: intervalS });
  }
}
