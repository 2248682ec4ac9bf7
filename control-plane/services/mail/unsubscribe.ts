import { timingSafeEqual } from 'node:crypto';
import { ONE_CLICK, categoryOf, isOneClick, itemsOf, type MailContent, type OneClick } from '../../domain/mail/mail.js';
import { Refusal } from '../../domain/refusal.js';
import type { Encryption } from '../secrets/encryption.js';

/**
 * Makes the token by which whoever has a mail ends mails of these categories to this user: the user, the categories, and a code that only
 * this control plane can make. It lasts as long as the secret key.
 */
export function makeUnsubscribeToken(encryption: Encryption, userId: string, categories: readonly OneClick[]): string {
  const claim = `${userId}.${categories.join('+')}`;
  return `${claim}.${codeOf(encryption, claim).toString('base64url')}`;
}

/** What a token ends: mails of these categories to a user, or invitations by mail to an address. */
export type Unsubscription = { userId: string; categories: OneClick[] } | { invitesTo: string };

/** Returns what a token says. Refuses with NOT_FOUND one that this control plane has not made. */
export function readUnsubscribeToken(encryption: Encryption, token: string): Unsubscription {
  const [, claim = '', whose = '', scope = '', code = ''] = TOKEN.exec(token) ?? [];
  const [wanted, given] = [codeOf(encryption, claim), Buffer.from(code, 'base64url')];
  if (claim === '' || given.length !== wanted.length || !timingSafeEqual(given, wanted)) throw unknownToken();
  if (scope === INVITES) return { invitesTo: Buffer.from(whose, 'base64url').toString() };
  const categories = scope.split('+').filter(isOneClick);
  if (categories.length === 0) throw unknownToken();
  return { userId: whose, categories };
}

function unknownToken(): Refusal {
  return new Refusal(
    'NOT_FOUND',
    'this link is not complete, or too old: choose which mails you get on the page of your account',
  );
}

/** An address in base64url, or the id of a user; what ends; the code. */
const TOKEN = /^(([A-Za-z0-9_-]{1,512})\.([a-z_+]{1,64}))\.([A-Za-z0-9_-]{22})$/;
/** No category that a user switches off. */
const INVITES = 'invites';

function codeOf(encryption: Encryption, claim: string): Buffer {
  return encryption.authenticate('mail.unsubscribe', claim);
}

/** Returns the token that ends what a mail is about, as far as one click may; undefined: nothing of it. */
export function unsubscribeTokenFor(
  encryption: Encryption,
  userId: string | null,
  content: MailContent,
): string | undefined {
  const told = new Set<string>(itemsOf(content).map(categoryOf));
  const categories = ONE_CLICK.filter((category) => told.has(category));
  if (userId === null || categories.length === 0) return undefined;
  return makeUnsubscribeToken(encryption, userId, categories);
}

/** Returns the token that ends invitations by mail to an address; undefined: the mail is no invitation. */
export function refusalTokenFor(encryption: Encryption, address: string, content: MailContent): string | undefined {
  if (!itemsOf(content).some(({ kind }) => kind === 'invite')) return undefined;
  const claim = `${Buffer.from(address.toLowerCase()).toString('base64url')}.${INVITES}`;
  return `${claim}.${codeOf(encryption, claim).toString('base64url')}`;
}
