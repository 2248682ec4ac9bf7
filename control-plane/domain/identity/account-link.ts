import { DAY_MS, HOUR_MS } from '../../../shared/time.js';

/** What a link does that is sent to an e-mail address. It works once, for this purpose only. */
export const LINK_PURPOSES = ['password_reset', 'sign_up'] as const;
export type LinkPurpose = (typeof LINK_PURPOSES)[number];

export const LINK_MS: Readonly<Record<LinkPurpose, number>> = { password_reset: HOUR_MS, sign_up: DAY_MS };

/** Links of one purpose that are sent to an address in an hour; of sign-ups, those that one wider network asks for. */
export const LINKS_AN_HOUR = 3;

/**
 * Links of sign-ups that are sent to an address in an hour, whoever asks for them: a stranger who signs up with somebody's address must not
 * keep its owner from it.
 */
export const SIGN_UPS_TO_ADDRESS = 10;

/** Links of one purpose that are asked for in a minute, by everybody: so that their rows and mails have a bound. */
export const LINKS_A_MINUTE = 200;

/** How often a password can be tried with the link of a new account. */
export const LINK_TRIES = 5;

/** What the token of a link begins with. */
export const LINK_PREFIX: Readonly<Record<LinkPurpose, string>> = { password_reset: 'rst_', sign_up: 'new_' };
