import { ApiError } from '../api/api.js';

/** Returns how many instances a request would stop at once that was refused for it. */
export function stopsIn(error: unknown): number | undefined {
  const stops = error instanceof ApiError && error.is('INVALID_STATE') ? error.body.would_stop : undefined;
  return typeof stops === 'number' ? stops : undefined;
}
