import { ApiError, connect } from '../../../../client/api/index.js';
import { noteServerTime } from './clock.js';
import { inTurn } from './first-reads.js';
import { sentOrganization } from './organization.js';

export { ApiError, EventsExpiredError, UnreachableError, type GpurentEvent } from '../../../../client/api/index.js';

/**
 * Sends a request with the cookie of the session, which can be that of somebody else by now: for another organization than the one that is
 * shown nothing is answered, and nothing done. X-Same-Origin shows that a page of this control plane has sent it.
 */
async function send(request: Request): Promise<Response> {
  const response = await inTurn(request, (next) => {
    next.headers.set('X-Same-Origin', '1');
    const organization = sentOrganization();
    if (organization !== undefined) next.headers.set('X-Org-Id', organization);
    return fetch(next);
  });
  noteServerTime(response.headers.get('date'));
  return response;
}

/** The API of the control plane that has served this page, in the name of whoever is signed in. */
export const api = connect({ url: location.origin, fetch: send });

/** Tells whether an error means that nobody is signed in any more. */
export function isSignedOut(error: unknown): boolean {
  return error instanceof ApiError && error.is('TOKEN_INVALID');
}

/** For so long a page that is left can still be told by other answers that nobody is signed in. */
const LEAVING_MS = 5_000;
let leftAt = -LEAVING_MS;

/** Goes to the page to sign in, which leads back to where the reader is. Of several answers that lead there at once, the first counts. */
export function goToSignIn(): void {
  const now = performance.now();
  if (now - leftAt < LEAVING_MS) return;
  leftAt = now;
  const here = location.pathname + location.search;
  location.assign(`/sign-in?${new URLSearchParams({ return_to: here }).toString()}`);
}
