import { HOUR_MS, MINUTE_MS } from '../../../shared/time.js';

/** How many hours a session of an issuer can last: an operator chooses. */
export const SESSION_HOURS = { least: 1, most: 720 } as const;

/** A session is renewed silently at most once in this time: also an issuer that always says no is asked no more often. */
export const RENEWAL_EVERY_MS = 15 * MINUTE_MS;

/** Which issuer has opened a session, when it last said who the user is, and when the session ends whatever its use; null: never. */
export interface Vouched {
  issuer: string;
  vouchedAt: number;
  endsAt: number | null;
}

/** Returns when a session ends for which its issuer has spoken at this time; null: no operator has set how long it lasts. */
export function endOfVouched(vouchedAt: number, sessionHours: number | null): number | null {
  return sessionHours === null ? null : vouchedAt + sessionHours * HOUR_MS;
}

/** Tells whether a session is in the second half of its time, and so to be renewed. */
export function isRenewalDue({ vouchedAt, endsAt }: Vouched, now: number): boolean {
  return endsAt !== null && now < endsAt && now >= vouchedAt + (endsAt - vouchedAt) / 2;
}

/** What an issuer says no with: the fields of OAuth 2.0, in the address with which the browser comes back or in the answer for a code. */
export interface IssuerNo {
  error: string;
  description: string | undefined;
  /** Whether nobody was to be asked anything (`prompt=none`). */
  isSilent: boolean;
}

/**
 * What the no of an issuer means:
 *
 * - `refused`: it does not know the account, has disabled it, or does not let it in here;
 * - `needs_person`: it would have to ask the person, which it was not allowed to;
 * - `denied`: the person has cancelled, or the issuer does not want to say;
 * - `other`: something else is wrong.
 */
export type Meaning = 'refused' | 'needs_person' | 'denied' | 'other';

interface Rule {
  error?: string;
  /** The number with which Microsoft Entra begins the description. */
  code?: string;
  /** What the description has to say. */
  words?: RegExp;
  /** Whether the rule holds only where nobody was to be asked anything. */
  onlySilent: boolean;
  means: Meaning;
}

/**
 * The rules, of which the first counts that fits. Keycloak and others say `login_required` of a disabled account, as they do of somebody
 * who has only signed out there: so that means nothing of the account.
 */
const RULES: readonly Rule[] = [
  // The user account is disabled.
  { code: 'AADSTS50057', onlySilent: false, means: 'refused' },
  // The user account does not exist in the tenant.
  { code: 'AADSTS50034', onlySilent: false, means: 'refused' },
  // The user is not assigned to the application, or not any more.
  { code: 'AADSTS50105', onlySilent: false, means: 'refused' },
  // Okta says so of a device, a network or a factor that a rule of the company does not let in: the account is as it was.
  { error: 'access_denied', words: /polic(y|ies)|network|device/i, onlySilent: true, means: 'needs_person' },
  // Nobody was asked, so nobody has cancelled.
  { error: 'access_denied', onlySilent: true, means: 'refused' },
  { error: 'access_denied', onlySilent: false, means: 'denied' },
  { error: 'login_required', onlySilent: true, means: 'needs_person' },
  { error: 'interaction_required', onlySilent: true, means: 'needs_person' },
  { error: 'consent_required', onlySilent: true, means: 'needs_person' },
  { error: 'account_selection_required', onlySilent: true, means: 'needs_person' },
];

/** Returns what the no of an issuer means. */
export function meaningOf({ error, description, isSilent }: IssuerNo): Meaning {
  const fits = (rule: Rule) =>
    (isSilent || !rule.onlySilent) &&
    (rule.error === undefined || rule.error === error) &&
    (rule.words === undefined || (description !== undefined && rule.words.test(description))) &&
    (rule.code === undefined || hasCode(description, rule.code));
  return RULES.find(fits)?.means ?? 'other';
}

/** Tells whether a description begins with a number, and not with a longer one. */
function hasCode(description: string | undefined, code: string): boolean {
  return description?.startsWith(code) === true && !/^\d/.test(description.slice(code.length));
}
