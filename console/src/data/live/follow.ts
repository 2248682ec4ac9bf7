import type { QueryClient } from '@tanstack/react-query';
import { api, ApiError, goToSignIn, isSignedOut, type GpurentEvent } from '../api/api.js';
import { serverNow } from '../api/clock.js';
import { connectionNow, type Connection } from './connection.js';
import { pause } from './pause.js';
import { me } from '../api/queries.js';
import { SomebodyElseError } from '../api/reader.js';
import { may } from '../api/rights.js';
import { startNow } from '../api/start.js';
import { whenMe } from '../api/when-me.js';

/** When a stream that has ended is asked for again. */
const SOON_MS = 1_000;
/** When a stream that was refused is asked for again. */
const AGAIN_MS = 15_000;

/** What the tab that follows the events tells all tabs. */
export type Message = { connection: Connection } | { event: Pick<GpurentEvent, 'type' | 'subject'> };
type Tell = (message: Message) => void;

/** Follows the events for all tabs while the role of the reader has events, until the signal is aborted or nobody is signed in. */
export async function followForAll(queries: QueryClient, tell: Tell, signal: AbortSignal): Promise<void> {
  const mayFollow = (reader: Parameters<typeof may>[0]) => may(reader, 'read');
  while (!signal.aborted) {
    if (!mayFollow(await whenMe(queries, () => true, signal))) tell(now('off'));
    await whenMe(queries, mayFollow, signal);
    const attempt = new AbortController();
    const either = AbortSignal.any([signal, attempt.signal]);
    whenNetworkChanges(either, (isLost) => {
      if (isLost) tell(now('cut'));
      attempt.abort();
    });
    try {
      await followOnce(queries, tell, either);
      await pause(SOON_MS, either);
    } catch (error) {
      if (isSignedOut(error)) return goToSignIn();
      if (!either.aborted) tell(error instanceof ApiError ? now('off', error.message) : now('cut'));
      await pause(error instanceof ApiError ? AGAIN_MS : SOON_MS, either);
    } finally {
      attempt.abort();
    }
  }
}

/** Whether this tab follows the events itself, from those on that came after the start of its page. */
let isFromStart = false;

export function followsFromStart(): boolean {
  return isFromStart;
}

async function followOnce(queries: QueryClient, tell: Tell, signal: AbortSignal): Promise<void> {
  const tellOnly = (message: Message) => {
    if (!signal.aborted) tell(message);
  };
  let changes = 0;
  const onConnection = async (isOpen: boolean) => {
    const change = ++changes;
    if (!isOpen) return tellOnly(now('cut'));
    // Each connection is that of whoever is signed in by then, which has to be the reader still.
    const isReader = await queries.query({ ...me, staleTime: 0 }).then(
      () => true,
      (error: unknown) => !(error instanceof SomebodyElseError),
    );
    if (isReader && change === changes) tellOnly({ connection: { state: 'live', since: serverNow() } });
  };
  const after = connectionNow().state === 'connecting' ? startNow()?.after : undefined;
  const events = api.events({
    signal,
    onConnection: (isOpen: boolean) => void onConnection(isOpen),
    ...(after !== undefined && { after }),
  });
  isFromStart = after !== undefined;
  try {
    for await (const { type, subject } of events) tell({ event: { type, subject } });
  } finally {
    isFromStart = false;
  }
}

/** Returns that a state begins, or goes on. */
function now(state: Connection['state'], reason?: string): Message {
  const before = connectionNow();
  return { connection: { state, since: before.state === state ? before.since : serverNow(), reason } };
}

/** Calls as soon as the browser loses its network or has one again: nobody has to wait until a silence is noticed, or the next attempt due. */
function whenNetworkChanges(signal: AbortSignal, call: (isLost: boolean) => void): void {
  window.addEventListener('online', () => call(false), { signal });
  window.addEventListener('offline', () => call(true), { signal });
}
