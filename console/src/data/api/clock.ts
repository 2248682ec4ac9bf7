import { useSyncExternalStore } from 'react';

/** Differences below this are the way of the answer, and the whole seconds of its header. */
const LEAST_SKEW_MS = 5_000;

let skewMs = 0;

/** Notes the time of the control plane, by the header `Date` of an answer: the clock of a reader's computer can be wrong. */
export function noteServerTime(date: string | null): void {
  const difference = Date.parse(date ?? '') - Date.now();
  if (Number.isNaN(difference)) return;
  skewMs = Math.abs(difference) < LEAST_SKEW_MS ? 0 : difference;
}

/** Returns the present time of the control plane, in milliseconds since 1970. */
export function serverNow(): number {
  return Date.now() + skewMs;
}

const listeners = new Set<() => void>();
let timer: ReturnType<typeof setInterval> | undefined;

function listen(listener: () => void): () => void {
  listeners.add(listener);
  timer ??= setInterval(() => {
    for (const each of listeners) each();
  }, 1_000);
  return () => {
    listeners.delete(listener);
    if (listeners.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  };
}

/** Returns the present time in milliseconds; the component is shown again when it has gone on by `stepMs`, whole seconds. */
export function useNow(stepMs: number): number {
  return useSyncExternalStore(listen, () => Math.floor(serverNow() / stepMs)) * stepMs;
}

/** Returns words that depend on the present time, in milliseconds; the component is shown again when they change. */
export function useTimely<Words extends string | null>(wordsAt: (now: number) => Words): Words {
  return useSyncExternalStore(listen, () => wordsAt(serverNow()));
}
