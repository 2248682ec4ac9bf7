import { isLoopback } from '../../../shared/network/addresses.js';
import { tenantsOf, type EntraClaims } from './microsoft.js';
import { Refusal } from '../refusal.js';

/** What somebody can be who joins an organization by the domain of the address: never an admin. */
export const DOMAIN_ROLES = ['member', 'viewer', 'billing'] as const;
export type DomainRole = (typeof DOMAIN_ROLES)[number];

/** How long a person has for the sign-in at the company, and then for the decision to link accounts. */
export const COMPANY_SIGN_IN_MS = 10 * 60_000;
/** By how many seconds the clock of an issuer can differ from ours. */
export const CLOCK_TOLERANCE_S = 60;

/** What is needed to ask an issuer. */
export interface IssuerAccess {
  id: string;
  url: string;
  clientId: string;
  clientSecret: string;
}

/** A sign-in that was begun at an issuer: what its answer must fit. */
export interface BegunAtIssuer {
  state: string;
  nonce: string;
  /** The secret whose hash the issuer has got (PKCE). */
  verifier: string;
  redirectUri: string;
  /** When the person was sent to sign in again, on the monotonic clock; null: who is signed in there already may stay so. */
  askedAgainAt: number | null;
  /** Whether the issuer was to ask the person nothing. */
  isSilent: boolean;
}

/** How an issuer is asked. */
export interface WantedOfIssuer {
  redirectUri: string;
  /** Also who is signed in there has to sign in again. */
  isAgain: boolean;
  /** The e-mail address of the person who is to be signed in there already, so that nobody is asked anything; absent: anybody, who can be asked. */
  silentFor?: string;
}

/** What an issuer says of the person who has signed in there. Its signature, audience, times and nonce are checked. */
export interface Assertion {
  subject: string;
  email: string | undefined;
  /** What it says of the address; undefined: nothing. */
  isVerified: boolean | undefined;
  /** What counts if it is Microsoft Entra. */
  entra: EntraClaims;
  name: string | undefined;
  /** The domain of a Google Workspace that the account belongs to. */
  hostedDomain: string | undefined;
  /** How long ago the person has signed in there, in milliseconds; undefined: it does not say. */
  signedInForMs: number | undefined;
}

/**
 * Why a sign-in at an issuer did not succeed: the person has refused it; the issuer does not know the account or has disabled it; it would
 * have to ask the person; no answer; or an answer that proves nothing.
 */
export class IssuerFailure extends Error {
  constructor(
    readonly kind: 'denied' | 'refused' | 'needs_person' | 'unreachable' | 'invalid',
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

/** Asks issuers, by OpenID Connect. All functions reject with {@link IssuerFailure}. */
export interface OpenId {
  /** Returns where the browser is sent, and what the answer must fit. */
  begin(issuer: IssuerAccess, wanted: WantedOfIssuer): Promise<{ url: string; begun: BegunAtIssuer }>;
  /** Exchanges the code in the parameters with which the browser came back for what the issuer says of the person. */
  finish(issuer: IssuerAccess, begun: BegunAtIssuer, answer: string): Promise<Assertion>;
}

/** Returns the domain of an e-mail address in lower case, as issuers are allowed to assert it; undefined: it has none. */
export function domainOf(email: string): string | undefined {
  return /^[^@\s]+@([^@\s]+)$/.exec(email)?.[1]?.toLowerCase();
}

/**
 * Returns the address of an issuer in the only form that is stored; undefined: it cannot be one. It has https; plain http must not leave
 * this machine.
 */
export function issuerUrlOf(text: string): string | undefined {
  if (!URL.canParse(text)) return undefined;
  const { protocol, hostname, username, password, search, hash, href, pathname, origin } = new URL(text);
  const isSafe = protocol === 'https:' || (protocol === 'http:' && isLoopback(hostname.replace(/^\[(.*)\]$/, '$1')));
  if (!isSafe || username + password + search + hash !== '') return undefined;
  return pathname === '/' ? origin : href;
}

/** Google gives accounts to any address, also to those of somebody who has left a company; only this claim names the company. */
const GOOGLE = 'https://accounts.google.com';
/** ASCII only: letters of other scripts can look alike. */
const ADDRESS = /^[a-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[a-z0-9.-]{1,253}$/i;
const MOST_ADDRESS_CHARS = 254;

/** A domain that an issuer may assert, and whether an operator answers for addresses of which it does not say that it has verified them. */
export interface AssertableDomain {
  domain: string;
  accept_unverified: boolean;
}

/**
 * Returns the e-mail address that an issuer asserts. Refuses with COMPANY_SIGN_IN_REFUSED one that is not its own, and one that is neither
 * verified nor accepted.
 */
export function acceptedAddress(issuer: string, assertion: Assertion, domains: readonly AssertableDomain[]): string {
  const { email, isVerified, hostedDomain } = assertion;
  if (email === undefined || email.length > MOST_ADDRESS_CHARS || !ADDRESS.test(email))
    throw refused('the company has named no e-mail address of yours: ask it to send the claim email');
  const name = domainOf(email);
  const domain = domains.find((each) => each.domain === name);
  if (name === undefined || domain === undefined)
    throw refused(`this sign-in may not speak for addresses of ${name}: ask the operator to add this domain`);
  if (isVerified !== true) checkAccepted(issuer, assertion, domain);
  if (issuer === GOOGLE && hostedDomain?.toLowerCase() !== name)
    throw refused(`your Google account does not belong to the Google Workspace of ${name}`);
  return email;
}

/** Refuses with COMPANY_SIGN_IN_REFUSED an address that is not verified, unless an operator accepts those of its domain. */
function checkAccepted(issuer: string, { isVerified, entra }: Assertion, domain: AssertableDomain): void {
  const tenants = tenantsOf(issuer);
  if (isVerified === undefined && tenants === 'one' && !domain.accept_unverified)
    throw refused(
      `Microsoft verifies no addresses: ask the operator to accept those of ${domain.domain} (accept_unverified)`,
    );
  if (isVerified === false || !domain.accept_unverified)
    throw refused('the company has not verified your e-mail address: ask it to send the claim email_verified');
  const obstacle = obstacleToAccept(issuer);
  if (obstacle !== undefined) throw refused(`${obstacle}: ask the operator to change this sign-in`);
  if (tenants === 'none') return;
  if (entra.isGuest) throw refused('you are a guest there: sign in at the company that has given you the account');
  if (!entra.isDomainVerified)
    throw refused(
      `Microsoft does not say that ${domain.domain} is a domain of the company: its administrator must add the optional claim xms_edov to the ID token`,
    );
}

/** Returns why nobody can answer for addresses that an issuer has not verified; undefined: an operator can. */
export function obstacleToAccept(issuer: string): string | undefined {
  if (issuer === GOOGLE) return 'Google speaks for people of any company, and says which addresses it has verified';
  if (tenantsOf(issuer) === 'many')
    return 'this issuer of Microsoft is not one tenant: its address must be https://login.microsoftonline.com/TENANT-ID/v2.0';
  return undefined;
}

function refused(message: string): Refusal {
  return new Refusal('COMPANY_SIGN_IN_REFUSED', message);
}

const MOST_NAME_CHARS = 64;
/** Control characters, and those that reorder the text around them. */
// oxlint-disable-next-line no-control-regex -- names must not have them
const UNSHOWABLE = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/** Returns the name of a new account: what the issuer says, without what cannot be shown, or the part of the address before the @. */
export function accountNameOf({ name }: Assertion, email: string): string {
  const shown = Array.from((name ?? '').replace(UNSHOWABLE, '').trim())
    .slice(0, MOST_NAME_CHARS)
    .join('');
  return shown === '' ? (email.split('@')[0] ?? email) : shown;
}
