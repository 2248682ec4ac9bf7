import { userActor } from '../../../domain/act.js';
import {
  IssuerFailure,
  acceptedAddress,
  accountNameOf,
  domainOf,
  type Assertion,
} from '../../../domain/identity/company.js';
import { diskFull } from '../../../domain/disk-room.js';
import { Refusal } from '../../../domain/refusal.js';
import type { Row } from '../../../store/schema.js';
import { rowById } from '../../../store/sql.js';
import type { Tx } from '../../../store/store.js';
import { recordAct } from '../../system/acts.js';
import type { Core, Platform } from '../../system/platform.js';
import { createUser } from '../users/users.js';
import { enterAs, type SignedIn } from './sign-in.js';
import { rememberAsserted, type HasAssertedAccounts } from '../companies/asserted-accounts.js';
import type { FactorStep } from './begin-second-step.js';
import { findUserByEmail } from '../users/users.js';
import { addIdentity, findIdentity, noteUse } from '../companies/identities.js';
import { accessTo, findDomain, getIssuer, type Issuer } from '../companies/issuers.js';
import { comeBack } from './leave-company.js';
import { foundOrganization, join } from '../../organizations/organizations.js';
import type { SessionOrigin } from '../sessions/sessions.js';
import { noteNetwork } from '../sessions/sign-in-networks.js';
import type { BegunSignIn, HasBegunSignIns } from './begun-sign-ins.js';
import { finishRenewal, type RenewalOutcome } from './renew-session.js';

/**
 * Begins a sign-in at a company, and returns the address to which the browser goes. Refuses with ISSUER_NOT_FOUND and ISSUER_UNAVAILABLE.
 */
export async function beginCompanySignIn(
  platform: Platform & HasBegunSignIns,
  { redirectUri, isAgain, ...rest }: Omit<BegunSignIn, 'begun' | 'renews'> & { redirectUri: string; isAgain: boolean },
): Promise<string> {
  const issuer = platform.store.transact((tx) => getIssuer(tx, rest.issuerId));
  const { url, begun } = await asking(() =>
    platform.openId.begin(accessTo(platform, issuer), { redirectUri, isAgain }),
  );
  platform.begunSignIns.put(begun.state, { ...rest, begun, renews: null });
  return url;
}

/** What follows a sign-in at a company: a session; the question whether to link it; it was linked before; or a session was to be renewed. */
export type Outcome =
  | { kind: 'session'; signedIn: SignedIn | FactorStep; returnTo: string | undefined }
  | { kind: 'known'; token: string }
  | { kind: 'link'; token: string }
  | { kind: 'linked' }
  | { kind: 'renewal'; outcome: RenewalOutcome; returnTo: string | undefined };

/**
 * Ends a sign-in at a company with what the browser has brought back. Each state is used once, by the browser that has begun, at the
 * issuer where it has begun. Opens a session for a linked account, and creates one for an address that has none; an account that exists
 * is linked only later. `sessionId`: the session of the browser, for {@link finishRenewal}. Refuses with COMPANY_SIGN_IN_INVALID, COMPANY_SIGN_IN_REFUSED, IDENTITY_TAKEN, ISSUER_NOT_FOUND,
 * ISSUER_UNAVAILABLE, and a new account with UNAVAILABLE while the disk is full.
 */
export async function finishCompanySignIn(
  platform: Platform & HasBegunSignIns & HasAssertedAccounts,
  {
    issuerId,
    browser,
    answer,
    sessionId,
  }: { issuerId: string; browser: string | undefined; answer: string; sessionId: string | undefined },
  origin: SessionOrigin,
): Promise<Outcome> {
  const state = new URLSearchParams(answer).get('state') ?? '';
  const sign = platform.begunSignIns.take(state, browser);
  if (sign?.issuerId !== issuerId)
    throw invalidReturn('this sign-in was used, has expired, or began in another browser');
  if (sign.renews) {
    const outcome = await finishRenewal(platform, sign, sign.renews, { answer, sessionId });
    return { kind: 'renewal', outcome, returnTo: sign.returnTo };
  }
  const issuer = platform.store.transact((tx) => getIssuer(tx, issuerId));
  const assertion = await asking(() => platform.openId.finish(accessTo(platform, issuer), sign.begun, answer));
  return platform.store.transact((tx) => {
    const present = getIssuer(tx, issuerId);
    if (present.url !== issuer.url) throw invalidReturn('the operator has changed this sign-in meanwhile');
    return sign.linkTo === null
      ? signInWith(platform, tx, present, { assertion, sign }, origin)
      : linkLater(platform, tx, present, { assertion, sign }, sign.linkTo);
  });
}

interface Proven {
  assertion: Assertion;
  sign: BegunSignIn;
}

function signInWith(
  platform: Platform & HasAssertedAccounts,
  tx: Tx,
  issuer: Issuer,
  proven: Proven,
  origin: SessionOrigin,
): Outcome {
  const { assertion, sign } = proven;
  const { returnTo } = sign;
  const identity = findIdentity(tx, issuer.url, assertion.subject);
  const known = identity && tx.get(rowById('users', identity.user_id));
  if (identity && known) {
    noteUse(tx, identity);
    comeBack(tx, issuer, identity, origin.network);
    return {
      kind: 'session',
      signedIn: enterAs(platform, tx, known, origin, vouchedBy(tx, issuer, assertion)),
      returnTo,
    };
  }
  const email = addressOf(issuer, assertion);
  const user = findUserByEmail(tx, email);
  if (user) return { kind: 'known', token: remember(platform, issuer, proven, { email, userId: user.id }) };
  return { kind: 'session', signedIn: createAccountOf(platform, tx, issuer, { assertion, email }, origin), returnTo };
}

/** Returns who says who the person is, and when that was proven: with the sign-in at the company, which can be hours old, if it says when. */
function vouchedBy(tx: Tx, { url }: Issuer, { signedInForMs = 0 }: Assertion): { provenAt: number; issuer: string } {
  return { provenAt: tx.now - signedInForMs, issuer: url };
}

function linkLater(core: Core & HasAssertedAccounts, tx: Tx, issuer: Issuer, proven: Proven, userId: string): Outcome {
  const identity = findIdentity(tx, issuer.url, proven.assertion.subject);
  if (identity?.user_id === userId) return { kind: 'linked' };
  if (identity) throw new Refusal('IDENTITY_TAKEN', "this account at the company is linked to another user's account");
  const email = addressOf(issuer, proven.assertion);
  return { kind: 'link', token: remember(core, issuer, proven, { email, userId }) };
}

function remember(
  core: Core & HasAssertedAccounts,
  { id, url }: Issuer,
  { assertion, sign: { network, browser, returnTo } }: Proven,
  whose: { email: string; userId: string },
): string {
  const asserted = { subject: assertion.subject, isVerified: assertion.isVerified === true };
  return rememberAsserted(core, { issuerId: id, issuer: url, network, browser, returnTo, ...asserted, ...whose });
}

function addressOf({ url, domains }: Issuer, assertion: Assertion): string {
  return acceptedAddress(url, assertion, domains);
}

/** Creates an account without a password, for somebody whose address the company has verified, and opens a session. */
function createAccountOf(
  platform: Platform,
  tx: Tx,
  issuer: Issuer,
  { assertion, email }: { assertion: Assertion; email: string },
  origin: SessionOrigin,
): SignedIn | FactorStep {
  if (platform.room.isFull) throw diskFull();
  const name = accountNameOf(assertion, email);
  const account = { email, name, passwordHash: '', isOperator: false, email_verified_at: tx.now };
  const user = createUser(tx, tx.id(), account);
  addIdentity(tx, user.id, { issuer: issuer.url, subject: assertion.subject, email });
  joinByDomain(tx, user, origin.network);
  noteNetwork(tx, user.id, origin.network);
  return enterAs(platform, tx, user, origin, vouchedBy(tx, issuer, assertion));
}

/**
 * Makes a user a member of the organization of the address's domain; without one, the admin of a new organization. `network`: where the
 * request comes from.
 */
export function joinByDomain(tx: Tx, { id, name, email }: Row<'users'>, network: string): void {
  const by = userActor(id, email);
  const domain = findDomain(tx, domainOf(email) ?? '');
  if (domain?.organization_id) {
    join(tx, domain.organization_id, id, domain.role);
    recordAct(tx, domain.organization_id, by, 'member.join', `members/${id}`, null, network);
    return;
  }
  const { id: founded } = foundOrganization(tx, id, `${name}'s organization`);
  recordAct(tx, founded, by, 'organization.create', `orgs/${founded}`, null, network);
}

/** Runs what asks an issuer, and refuses with what a person can do about its failure. */
async function asking<T>(ask: () => Promise<T>): Promise<T> {
  try {
    return await ask();
  } catch (error) {
    if (!(error instanceof IssuerFailure)) throw error;
    if (error.kind === 'unreachable')
      throw new Refusal('ISSUER_UNAVAILABLE', "the company's sign-in does not answer; try again shortly");
    if (error.kind === 'refused')
      throw new Refusal(
        'COMPANY_SIGN_IN_REFUSED',
        'the company does not know your account, has disabled it, or does not let it in here; ask your company',
      );
    if (error.kind === 'denied') throw new Refusal('COMPANY_SIGN_IN_REFUSED', 'the company has not signed you in');
    throw invalidReturn('the answer of the company is not valid; its reason is in the log of the operator');
  }
}

function invalidReturn(message: string): Refusal {
  return new Refusal('COMPANY_SIGN_IN_INVALID', `${message}; begin the sign-in again`);
}
