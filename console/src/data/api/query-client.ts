import { MutationCache, QueryCache, QueryClient } from '@tanstack/react-query';
import { ApiError, goToSignIn, isSignedOut } from './api.js';
import { leaveOrganization, sentOrganization } from './organization.js';

/** What was read stays on the screen while it is read again. The events say when; a minute is for what no event tells. */
const STALE_MS = 60_000;

function whenFailed(error: unknown): void {
  if (isSignedOut(error)) goToSignIn();
  // Its member has left it, or was removed, or somebody else is signed in. Without an organization there is none to leave.
  else if (error instanceof ApiError && error.is('ORG_MISMATCH') && sentOrganization() !== undefined)
    leaveOrganization();
}

/** Makes the store of everything that was read. Requests are repeated by the client of the API, not here. */
export function makeQueryClient(): QueryClient {
  return new QueryClient({
    queryCache: new QueryCache({ onError: whenFailed }),
    mutationCache: new MutationCache({ onError: whenFailed }),
    defaultOptions: {
      queries: { staleTime: STALE_MS, retry: false, networkMode: 'always', refetchOnWindowFocus: true },
      mutations: { retry: false, networkMode: 'always' },
    },
  });
}
