/** Prefix that replaces the e-mail address of a removed user. No valid address has it, so nobody can sign in or up with it. */
export const REMOVED = 'removed:';

/** Pattern of the e-mail addresses of removed users. */
export const REMOVED_EMAILS = `${REMOVED}%`;
