import { ApiError, connect } from '../../../client/api/index.js';
import { noteServerTime } from './clock.js';
import { chosenOrganization } from './organization.js';

export { ApiError, EventsExpiredError, UnreachableError, type GpurentEvent } from '../../../client/api/index.js';

/** Sends a request with the cookie of the session. The header shows that a page of this control plane has sent it. */
async function send(request: Request): Promise<Response> {
  request.headers.set('X-Same-Origin', '1');
  const response = await fetch(request);
  noteServerTime(response.headers.get('date'));
  return response;
}

const organizationId = chosenOrganization();

/** The API of the control plane that has served this page, in the name of whoever is signed in. */
export const api = connect({
  ...{ url: location.origin, fetch: send },
  ...(organizationId === undefined ? {} : { organizationId }),
});

/** Tells whether an error means that nobody is signed in any more. */
export function isSignedOut(error: unknown): boolean {
  return error instanceof ApiError && error.is('TOKEN_INVALID');
}

/** Goes to the page to sign in, which leads back to where the reader is. */
export function goToSignIn(): void {
  const here = location.pathname + location.search;
  location.assign(`/sign-in?${new URLSearchParams({ return_to: here }).toString()}`);
}
