import type { AccountCaller } from '../../../domain/caller.js';
import { DEVICE_CODE_LIMITS, DEVICE_CODE_MS, typedCode } from '../../../domain/identity/device-code.js';
import { countNear } from '../../../domain/network.js';
import { Refusal } from '../../../domain/refusal.js';
import { mayTake } from '../../../domain/shared-total.js';
import { compileOnce, insertRow, query, sql } from '../../../store/sql.js';
import type { Tx } from '../../../store/store.js';
import type { Core, Platform } from '../../system/platform.js';
import { changeCode, findByUserCode, findTypedIn, getTypedIn, invalidCode, type DeviceCode } from './device-codes.js';
import { checkFreshProof } from '../sessions/fresh-proof.js';
import { networkOfSession } from '../sessions/sessions.js';

/** What a program asks for whose code a person has typed. */
export interface DeviceRequest {
  id: string;
  /** What the program calls itself: a text of a stranger. */
  name: string;
  /** What it says of itself, in the words of `deviceOf`. */
  device: string | null;
  /** The network from which it asks. */
  network: string;
  /** Whether the person's own session was last used from the same network. */
  isSameNetwork: boolean;
  created_at: number;
  expires_at: number;
}

/**
 * Returns what the program asks for whose code the caller has typed, and lets this session alone approve or deny it. Refuses with
 * DEVICE_CODE_INVALID, the same for a code that is wrong, expired, used, or was typed by somebody else; and with RATE_LIMITED after five of
 * these within ten minutes, or while too many are typed by all users: see `mayTake`. `network`: where it is typed.
 */
export function typeDeviceCode(
  platform: Platform,
  caller: AccountCaller,
  typed: string,
  network: string,
): DeviceRequest {
  const letters = typedCode(typed);
  // It can be no code, so it is no guess.
  if (letters === undefined) throw invalidCode();
  const found = platform.store.transact((tx) => {
    checkGuesses(tx, caller.userId, network);
    const code = findByUserCode(platform, tx, letters);
    if (code && (code.user_id === null || code.user_id === caller.userId)) {
      leaveOthers(tx, caller);
      changeCode(tx, code.id, { user_id: caller.userId, session_id: caller.sessionId });
      return describe(platform, tx, caller, code);
    }
    noteGuess(tx, caller.userId, network);
    return undefined;
  });
  if (!found) throw invalidCode();
  return found;
}

/** Returns what the program asks for whose code was typed in the caller's session; undefined: none was. */
export function typedDeviceRequest(platform: Platform, caller: AccountCaller): DeviceRequest | undefined {
  return platform.store.transact((tx) => {
    const code = findTypedIn(tx, caller.sessionId);
    return code && describe(platform, tx, caller, code);
  });
}

/**
 * Lets a program sign in as the caller. Refuses with DEVICE_CODE_INVALID, and with PROOF_REQUIRED if the caller has proven who it is more
 * than 15 minutes ago.
 */
export function approveDevice(core: Core, caller: AccountCaller, id: string): void {
  core.store.transact((tx) => {
    const code = getTypedIn(tx, caller.sessionId, id);
    checkFreshProof(tx, caller);
    changeCode(tx, code.id, { state: 'approved' });
  });
}

/** Refuses a program whose code was typed in the caller's session. Refuses with DEVICE_CODE_INVALID. */
export function denyDevice(core: Core, { sessionId }: AccountCaller, id: string): void {
  core.store.transact((tx) => changeCode(tx, getTypedIn(tx, sessionId, id).id, { state: 'denied' }));
}

/** A session shows one request at a time, so that the approval is for the one that is shown. */
function leaveOthers(tx: Tx, { sessionId }: AccountCaller): void {
  const typed = findTypedIn(tx, sessionId);
  if (typed) changeCode(tx, typed.id, { session_id: null });
}

function describe(platform: Platform, tx: Tx, { sessionId }: AccountCaller, code: DeviceCode): DeviceRequest {
  const { id, name, device, network, created_at, expires_at } = code;
  const isSameNetwork = networkOfSession(platform, tx, sessionId) === network;
  return { id, name, device, network, isSameNetwork, created_at, expires_at };
}

/** Refuses with RATE_LIMITED. Whoever holds guesses are the user and everybody in the wider network: many accounts can be one person's. */
function checkGuesses(tx: Tx, userId: string, network: string): void {
  const { wrongOfUser, wrongOfAll } = DEVICE_CODE_LIMITS;
  const all = tx.all(guesses({ now: tx.now }));
  const ofUser = all.filter((guess) => guess.user_id === userId).length;
  const near = all.map((guess) => guess.network);
  const held = Math.max(ofUser, countNear(network, near));
  if (ofUser < wrongOfUser && mayTake({ most: wrongOfAll, taken: all.length, held })) return;
  const seconds = DEVICE_CODE_MS / 1_000;
  throw new Refusal('RATE_LIMITED', `too many wrong codes were typed; try again in ${seconds} s`, {
    retry_after_seconds: seconds,
  });
}

function noteGuess(tx: Tx, userId: string, network: string): void {
  const expires_at = tx.now + DEVICE_CODE_MS;
  tx.run(insertRow('device_code_guesses', { id: tx.id(), user_id: userId, network, expires_at }));
}

const guesses = compileOnce(({ now }: { now: number }) =>
  query
    .selectFrom('device_code_guesses')
    .select(['user_id', 'network'])
    .where('expires_at', '>', now)
    .limit(sql.lit(DEVICE_CODE_LIMITS.wrongOfAll)),
);
