import type { QueryClient } from '@tanstack/react-query';
import { useSyncExternalStore } from 'react';
import { api, EventsExpiredError, goToSignIn, isSignedOut } from './api.js';
import { serverNow } from './clock.js';
import { concernsOf } from './concerns.js';

/** Whether events arrive: so what is shown is what is so. `off`: the reader's role has no events. `since`: milliseconds since 1970. */
export interface Connection {
  state: 'connecting' | 'live' | 'cut' | 'off';
  since: number;
}

let connection: Connection = { state: 'connecting', since: serverNow() };
const listeners = new Set<() => void>();

function set(state: Connection['state']): void {
  if (connection.state === state) return;
  connection = { state, since: serverNow() };
  for (const listener of listeners) listener();
}

/** Returns the state of the event stream. */
export function useConnection(): Connection {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    () => connection,
  );
}

/** How long events are gathered before what they concern is read again: a deploy tells several at once. */
const GATHER_MS = 50;

/**
 * Returns a signal that is aborted with `signal`, and as soon as the browser loses its network or has one again: nobody has to wait until
 * a silence is noticed, or until the next attempt is due.
 */
function untilNetworkChanges(signal: AbortSignal): AbortSignal {
  const changed = new AbortController();
  const either = AbortSignal.any([signal, changed.signal]);
  window.addEventListener('online', () => changed.abort(), { signal: either });
  window.addEventListener(
    'offline',
    () => {
      set('cut');
      changed.abort();
    },
    { signal: either },
  );
  return either;
}

/**
 * Follows the organization's events until the signal is aborted, and has every query read again that an event concerns. After a cut it
 * goes on where it was; if events were deleted meanwhile, or the browser was offline, everything is read again.
 */
export async function followLive(queries: QueryClient, signal: AbortSignal): Promise<void> {
  const keys = new Map<string, readonly string[]>();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const refresh = () => {
    timer = undefined;
    for (const queryKey of keys.values()) void queries.invalidateQueries({ queryKey });
    keys.clear();
  };
  while (!signal.aborted) {
    const attempt = untilNetworkChanges(signal);
    const onConnection = (isOpen: boolean) => {
      if (attempt.aborted) return;
      // What was read before the stream was open can have changed since, and no event tells it.
      if (isOpen) void queries.invalidateQueries();
      set(isOpen ? 'live' : 'cut');
    };
    try {
      for await (const event of api.events({ signal: attempt, onConnection })) {
        for (const key of concernsOf(event)) keys.set(key.join('/'), key);
        timer ??= setTimeout(refresh, GATHER_MS);
      }
    } catch (error) {
      if (isSignedOut(error)) return goToSignIn();
      if (!(error instanceof EventsExpiredError)) {
        // What is shown may be theirs no more: they were removed, or have another role.
        if (connection.state !== 'connecting') void queries.invalidateQueries();
        return set('off');
      }
      set('cut');
      void queries.invalidateQueries();
    }
  }
}
