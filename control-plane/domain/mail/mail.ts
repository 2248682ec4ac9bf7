import type { LinkPurpose } from '../identity/account-link.js';
import { HOUR_MS, MINUTE_MS } from '../../../shared/time.js';
import type { Role } from '../caller.js';
import type { FactorKind } from '../identity/second-factor.js';
import type { Period } from '../money/spend-cap.js';

/** What a person can switch off; everything else is always mailed. */
export const MAIL_CHOICES = ['low_balance', 'disks', 'money', 'caps', 'notices'] as const;
export type MailChoice = (typeof MAIL_CHOICES)[number];
export type MailCategory = MailChoice | 'security' | 'invites' | 'suspension';

/**
 * The categories that a mail itself can end with one click, by RFC 8058: warnings of what may happen. What has happened to money, and
 * security, cannot be ended by whoever gets hold of a mail.
 */
export const ONE_CLICK = ['low_balance', 'disks'] as const satisfies MailChoice[];
export type OneClick = (typeof ONE_CLICK)[number];

export const MAIL_KINDS = [
  'invite',
  'balance_low',
  'balance_exhausted',
  'disks_at_risk',
  'paid',
  'payment_failed',
  'spend_cap',
  'sign_in',
  'suspended',
  'restored',
  'suspended_disks',
  'notice',
  'password_reset',
  'password_changed',
  'sign_up',
  'sign_up_exists',
  'second_factor_added',
  'second_factor_removed',
  'second_factor_removal',
  'digest',
] as const;
export type MailKind = (typeof MAIL_KINDS)[number];

/** `held`: others came first within the hour. `in_digest`: told by a digest. `cancelled`: of no use any more. */
export const MAIL_STATES = ['queued', 'held', 'sent', 'failed', 'in_digest', 'cancelled'] as const;
export type MailState = (typeof MAIL_STATES)[number];

/** What a mail tells. Money is integer micro-dollars, times are milliseconds since 1970. */
export type MailItem =
  | {
      kind: 'invite';
      invite_id: string;
      organization: string;
      invited_by: string;
      role: Role;
      token: string;
      expires_at: number;
    }
  | (OfOrganization & { kind: 'balance_low'; balance_micro: number; lasts_until: number; hours: number })
  | (OfOrganization & { kind: 'balance_exhausted'; balance_micro: number })
  | (OfOrganization & {
      kind: 'disks_at_risk';
      balance_micro: number;
      destroyed_at: number;
      hours: number;
      instances: number;
    })
  | (OfOrganization & { kind: 'paid'; amount_micro: number; balance_micro: number })
  | (OfOrganization & { kind: 'payment_failed'; amount_micro: number; balance_micro: number })
  | (OfOrganization & {
      kind: 'spend_cap';
      /** Null: the cap of the organization. */
      api_key_id: string | null;
      period: Period;
      percent: number;
      limit_micro: number;
      spent_micro: number;
    })
  | (OfOrganization & { kind: 'suspended'; reason: string; disks_kept_until: number })
  | (OfOrganization & { kind: 'restored'; reason: string })
  | (OfOrganization & {
      kind: 'suspended_disks';
      reason: string;
      destroyed_at: number;
      hours: number;
      instances: number;
    })
  | (OfOrganization & { kind: 'notice'; machine: string; message: string; instances: number })
  | { kind: 'sign_in'; network: string; at: number }
  | { kind: LinkPurpose; token: string; expires_at: number }
  /** Somebody has signed up with the address of an account. */
  | { kind: 'sign_up_exists' }
  | { kind: 'password_changed'; at: number }
  /** `factor`: null: all of them, by an operator. */
  | { kind: 'second_factor_added' | 'second_factor_removed'; at: number; factor: FactorKind | null; name: string }
  /** An operator has asked for the removal of all second factors. */
  | { kind: 'second_factor_removal'; effective_at: number; reason: string };

interface OfOrganization {
  organization_id: string;
  /** Its name. */
  organization: string;
}

/** What a mail says: one thing, or in a digest several, of which `isCut` says that some are left out. */
export type MailContent = MailItem | { kind: 'digest'; items: MailItem[]; isCut: boolean };

const CATEGORIES: Readonly<Record<MailItem['kind'], MailCategory>> = {
  invite: 'invites',
  balance_low: 'low_balance',
  balance_exhausted: 'money',
  disks_at_risk: 'disks',
  paid: 'money',
  payment_failed: 'money',
  spend_cap: 'caps',
  sign_in: 'security',
  suspended: 'suspension',
  restored: 'suspension',
  suspended_disks: 'disks',
  notice: 'notices',
  password_reset: 'security',
  password_changed: 'security',
  sign_up: 'security',
  sign_up_exists: 'security',
  second_factor_added: 'security',
  second_factor_removed: 'security',
  second_factor_removal: 'security',
};

export function categoryOf({ kind }: MailItem): MailCategory {
  return CATEGORIES[kind];
}

/** Returns what a mail tells, one by one. */
export function itemsOf(content: MailContent): MailItem[] {
  return content.kind === 'digest' ? content.items : [content];
}

/** Tells whether a person can switch this category off. */
export function isChoice(category: MailCategory): category is MailChoice {
  return (MAIL_CHOICES as readonly string[]).includes(category);
}

/** Tells whether a mail can end this category with one click. */
export function isOneClick(category: string): category is OneClick {
  return (ONE_CLICK as readonly string[]).includes(category);
}

/** The most that happens, so that nobody is flooded and no mail server is in the way of others. */
export const MAIL_LIMITS = {
  /** To one person in an hour; security and invitations are counted apart. */
  perHour: 5,
  /** That wait for one person; what is beyond is not mailed. */
  waiting: 50,
  /** Members who are told of one event. */
  membersTold: 100,
  /** On their way to the server at once, by how urgent they are: the last places are for what is more urgent. */
  inFlight: [5, 4, 3, 3],
  /** Of these, of one sender of the least urgent ones. */
  inFlightOfSender: 2,
} as const;

/**
 * Mails in 24 hours that somebody's act sends to addresses that have not asked for them. A sender is known who has a confirmed address, and
 * who administers or pays for an organization that has paid.
 */
export const STRANGER_LIMITS = {
  /** Of one sender. */
  unknownSender: 5,
  knownSender: 50,
  /** To one address, from all senders that are not known; and from all. */
  toOneFromUnknown: 3,
  toOne: 10,
  /** From one network, of one kind. */
  network: 100,
} as const;

/** How many kinds of urgency there are. */
export const URGENCIES = [0, 1, 2, 3] as const;
export type Urgency = (typeof URGENCIES)[number];

const URGENCY: Readonly<Record<MailCategory, Urgency>> = {
  security: 0,
  low_balance: 1,
  disks: 1,
  money: 1,
  caps: 1,
  suspension: 1,
  notices: 2,
  invites: 3,
};

/** Returns how urgent a mail is: 0 what a person waits for or must know at once, 1 what costs money, 3 what nobody has asked for. */
export function urgencyOf(content: MailContent): Urgency {
  const all: Urgency[] = itemsOf(content).map((item) => URGENCY[categoryOf(item)]);
  return all.reduce((least, each) => (each < least ? each : least), 3);
}

/** How much later than the one before it each further waiting mail of a sender has its turn. */
export const TURN_MS = MINUTE_MS;

/** For so long a mail is tried. */
export const MAIL_TRIED_MS = 24 * HOUR_MS;
/** After so long without an answer a mail is sent again; longer than a server can take. */
export const MAIL_LEASE_MS = 10 * MINUTE_MS;
/** After the first, the second, ... failure; the last is for all later ones. */
const RETRIES_MS = [MINUTE_MS, 5 * MINUTE_MS, 15 * MINUTE_MS, HOUR_MS, 3 * HOUR_MS, 6 * HOUR_MS];

/** Returns for how long to wait after a mail has failed `attempts` times. */
export function mailRetryMs(attempts: number): number {
  return RETRIES_MS[Math.min(attempts, RETRIES_MS.length) - 1] ?? MINUTE_MS;
}

/** A mail, ready to be sent. */
export interface Mail {
  /** The id of its row: the same at each attempt. */
  id: string;
  to: string;
  subject: string;
  text: string;
  html: string;
  /** Milliseconds since 1970. */
  createdAt: number;
  /** The address that ends this kind of mail; null: nothing does. */
  unsubscribeUrl: string | null;
}

/** What became of an attempt. `answer` is the server's, or what went wrong, for the log. */
export interface Delivery {
  /**
   * - sent: the server has accepted it
   * - rejected: the server will never accept it
   * - postponed: the server does not accept it now
   * - unreachable: it was not given to the server, because no mail can be now
   * - unknown: it was given to the server, which has not answered
   */
  outcome: 'sent' | 'rejected' | 'postponed' | 'unreachable' | 'unknown';
  answer: string;
}

/** Gives mails to a mail server. */
export interface MailTransport {
  /** Sends one mail within a minute and a half. Never rejects. */
  send(mail: Mail): Promise<Delivery>;
  /** Ends every connection, also those that are in use. */
  close(): void;
}
