import { useSyncExternalStore } from 'react';
import { serverNow } from '../api/clock.js';

/**
 * Whether events arrive: so what is shown is what is so. `cut`: the control plane is not heard. `off`: it sends no events, for `reason` in
 * its words; without one, since the reader's role has none. `since`: milliseconds since 1970.
 */
export interface Connection {
  state: 'connecting' | 'live' | 'cut' | 'off';
  since: number;
  reason?: string | undefined;
}

/** How often everything is read again while the control plane sends no events. */
export const READ_AGAIN_MS = 20_000;

let connection: Connection = { state: 'connecting', since: serverNow() };
const listeners = new Set<() => void>();

export function connectionNow(): Connection {
  return connection;
}

export function setConnection(next: Connection): void {
  connection = next;
  for (const listener of listeners) listener();
}

/** Returns the state of the event stream. */
export function useConnection(): Connection {
  return useSyncExternalStore((listener) => {
    listeners.add(listener);
    return () => void listeners.delete(listener);
  }, connectionNow);
}
