import type { BegunAtIssuer } from '../../../domain/identity/company.js';
import type { ShortLived } from '../companies/short-lived.js';

/** The session that a browser wants to renew silently. What an answer says never tells whose session it is; this does. */
export interface Renewed {
  sessionId: string;
  userId: string;
}

/** A sign-in at a company that a browser has begun. */
export interface BegunSignIn {
  network: string;
  browser: string;
  issuerId: string;
  begun: BegunAtIssuer;
  returnTo: string | undefined;
  /** The user who wants to link the account; null: somebody wants to sign in. */
  linkTo: string | null;
  /** The session that is to be renewed; null: none. */
  renews: Renewed | null;
}

/** The sign-ins that browsers have begun, by their state. */
export interface HasBegunSignIns {
  begunSignIns: ShortLived<BegunSignIn>;
}
