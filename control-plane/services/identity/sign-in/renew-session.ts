import type { Clock } from '../../../../shared/clock.js';
import { recent } from '../../../../shared/recent.js';
import { IssuerFailure, type Assertion } from '../../../domain/identity/company.js';
import { isRenewalDue, RENEWAL_EVERY_MS } from '../../../domain/identity/company-session.js';
import { Refusal } from '../../../domain/refusal.js';
import { compileOnce, query, rowById } from '../../../store/sql.js';
import type { Tx } from '../../../store/store.js';
import type { Platform } from '../../system/platform.js';
import { findIdentity, noteUse } from '../companies/identities.js';
import { accessTo, getIssuer, type IssuerRow } from '../companies/issuers.js';
import { leaveCompany } from './leave-company.js';
import { findSessionOf, type HasCredentials } from '../sessions/authenticate.js';
import { renewSession, vouchedIn, type FoundSession } from '../sessions/sessions.js';
import type { BegunSignIn, HasBegunSignIns, Renewed } from './begun-sign-ins.js';

/** The sessions that are remembered at once because a browser has tried to renew them. */
export const MOST_TRIES = 10_000;

/** When browsers have last tried to renew a session. It is in memory: after a restart, they may try once more. */
export class RenewalTries {
  private readonly tries = recent<{ at: number }>(MOST_TRIES);

  constructor(private readonly clock: Pick<Clock, 'monotonic'>) {}

  /** Records a try, and returns whether it may be made: one in 15 minutes. */
  take(sessionId: string): boolean {
    const at = this.clock.monotonic();
    const last = this.tries.get(sessionId);
    if (last && at - last.at < RENEWAL_EVERY_MS) return false;
    this.tries.set(sessionId, { at });
    return true;
  }
}

export interface HasRenewalTries {
  renewalTries: RenewalTries;
}

type Renewing = Platform & HasBegunSignIns & HasCredentials & HasRenewalTries;

/**
 * Begins to renew the session of a token silently, if that is due, and returns the address to which the browser goes. Returns undefined if
 * nothing is due, if it was tried less than 15 minutes ago, and if the issuer does not answer: the session then stays until its end.
 */
export async function beginRenewal(
  platform: Renewing,
  token: string,
  browserOf: (issuerId: string) => Pick<BegunSignIn, 'network' | 'browser' | 'returnTo'> & { redirectUri: string },
): Promise<string | undefined> {
  const session = findSessionOf(platform, token);
  const vouched = session && vouchedIn(session);
  if (!session || !vouched || !isRenewalDue(vouched, platform.clock.now())) return undefined;
  const wanted = platform.store.transact((tx) => renewable(tx, session, vouched.issuer));
  if (!wanted || !platform.renewalTries.take(session.id)) return undefined;
  const { issuer, email } = wanted;
  const { redirectUri, ...rest } = browserOf(issuer.id);
  const asked = { redirectUri, isAgain: false, silentFor: email };
  const went = await unlessItFails(() => platform.openId.begin(accessTo(platform, issuer), asked));
  if (went === undefined || went instanceof IssuerFailure) return undefined;
  const renews = { sessionId: session.id, userId: session.userId };
  platform.begunSignIns.put(went.begun.state, {
    ...rest,
    issuerId: issuer.id,
    begun: went.begun,
    linkTo: null,
    renews,
  });
  return went.url;
}

/** Returns the issuer that can renew a session, with its address of the user; undefined: it cannot. */
function renewable(tx: Tx, { userId }: FoundSession, url: string): { issuer: IssuerRow; email: string } | undefined {
  const issuer = tx.get(issuerAt({ url }));
  if (issuer?.renews_sessions !== 1 || issuer.session_hours === null) return undefined;
  const identity = tx.get(identityOf({ userId, url }));
  return identity && { issuer, email: identity.email };
}

/**
 * What follows a silent renewal: the session is `renewed`; it `stays` until its end; the issuer has signed in `another` account; or it has
 * `refused` the account, and the sessions are ended.
 */
export type RenewalOutcome = 'renewed' | 'stays' | 'another' | 'refused';

/**
 * Ends a silent renewal with what the browser has brought back. It counts only in the session that has begun it: `sessionId` is the one of
 * the request.
 */
export async function finishRenewal(
  platform: Platform,
  { issuerId, begun }: BegunSignIn,
  renews: Renewed,
  { answer, sessionId }: { answer: string; sessionId: string | undefined },
): Promise<RenewalOutcome> {
  if (sessionId !== renews.sessionId) return 'stays';
  const before = platform.store.transact((tx) => tx.get(rowById('issuers', issuerId)));
  if (!before) return 'stays';
  const said = await unlessItFails(() => platform.openId.finish(accessTo(platform, before), begun, answer));
  if (said === undefined) return 'stays';
  return platform.store.transact((tx) => {
    const issuer = tx.get(rowById('issuers', issuerId));
    // The operator can have changed the issuer meanwhile, and the user can have signed out.
    const session = tx.get(rowById('sessions', renews.sessionId));
    if (!issuer || session?.issuer !== issuer.url || session.expires_at <= tx.now) return 'stays';
    if (!(said instanceof IssuerFailure)) return renew(tx, issuer, renews, said);
    if (said.kind !== 'refused') return 'stays';
    leaveCompany(tx, getIssuer(tx, issuerId), renews.userId);
    return 'refused';
  });
}

function renew(tx: Tx, { url }: IssuerRow, { sessionId, userId }: Renewed, { subject }: Assertion): RenewalOutcome {
  const identity = findIdentity(tx, url, subject);
  if (identity?.user_id !== userId) return 'another';
  noteUse(tx, identity);
  // It is no proof of who sits at the browser: nobody was asked anything.
  renewSession(tx, sessionId, url);
  return 'renewed';
}

/** Returns the answer of an issuer, or its failure; undefined: it could not be asked. */
async function unlessItFails<T>(ask: () => Promise<T>): Promise<T | IssuerFailure | undefined> {
  try {
    return await ask();
  } catch (error) {
    if (error instanceof IssuerFailure) return error;
    if (error instanceof Refusal) return undefined;
    throw error;
  }
}

const issuerAt = compileOnce(({ url }: { url: string }) =>
  query.selectFrom('issuers').selectAll().where('url', '=', url),
);

const identityOf = compileOnce(({ userId, url }: { userId: string; url: string }) =>
  query.selectFrom('identities').select('email').where('user_id', '=', userId).where('issuer', '=', url).limit(1),
);
