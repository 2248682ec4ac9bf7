import { MINUTE_MS } from '../../../shared/time.js';

/** How long a program waits for a person to approve that it signs in. */
export const DEVICE_CODE_MS = 10 * MINUTE_MS;

/** How often the program may ask whether somebody has approved it. */
export const POLL_INTERVAL_S = 5;

/** What has become of a device code so far. */
export const DEVICE_CODE_STATES = ['pending', 'approved', 'denied'] as const;
export type DeviceCodeState = (typeof DEVICE_CODE_STATES)[number];

/** The most that strangers and users can do with codes; times are those of {@link DEVICE_CODE_MS}. */
export const DEVICE_CODE_LIMITS = {
  /** Codes that are open at once: of one network, and of all. */
  ofNetwork: 20,
  ofAll: 1_000,
  /** Wrong codes that a user types, and that all users type: of 20^8 codes, so few hit none of those that are open. */
  wrongOfUser: 5,
  wrongOfAll: 1_000,
} as const;

/** No vowels, so no words, and no digits. */
const LETTERS = 'BCDFGHJKLMNPQRSTVWXZ';
const LENGTH = 8;
const WRITTEN = new RegExp(`^[${LETTERS}]{${LENGTH}}$`);

/** Makes the code that a person types from random hexadecimal digits, 32 or more so that all codes are as likely. */
export function userCodeFrom(hex: string): string {
  let rest = BigInt(`0x${hex}`);
  let code = '';
  for (let count = 0; count < LENGTH; count++) {
    code += LETTERS.charAt(Number(rest % BigInt(LETTERS.length)));
    rest /= BigInt(LETTERS.length);
  }
  return code;
}

/** Returns a code as it is shown: XXXX-XXXX. */
export function shownCode(code: string): string {
  return `${code.slice(0, LENGTH / 2)}-${code.slice(LENGTH / 2)}`;
}

/** Returns the code that a person has typed, in whatever case and with whatever between its letters; undefined: it is none. */
export function typedCode(text: string): string | undefined {
  const code = text.toUpperCase().replace(/[\s-]+/g, '');
  return WRITTEN.test(code) ? code : undefined;
}
