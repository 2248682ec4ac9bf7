import { useSyncExternalStore } from 'react';

const KEY = 'gpurent.exact-times';
const listeners = new Set<() => void>();
/** What this page shows; a browser without storage forgets it with the page. */
let isExact = kept();

function kept(): boolean {
  try {
    return localStorage.getItem(KEY) === 'yes';
  } catch {
    return false;
  }
}

/** Shows every time exactly, or as people say it, and remembers that in this browser. */
export function showExactTimes(exact: boolean): void {
  isExact = exact;
  for (const each of listeners) each();
  try {
    if (exact) localStorage.setItem(KEY, 'yes');
    else localStorage.removeItem(KEY);
  } catch {
    // It counts for this page.
  }
}

function listen(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Returns whether the reader has chosen to see exact times. */
export function useExactTimes(): boolean {
  return useSyncExternalStore(listen, () => isExact);
}
