import { useEffect, useState, type Dispatch, type SetStateAction } from 'react';
import { chosenOrganization } from './organization.js';

/** A proof holds for so long; a sign-in takes less. */
const LONGEST_MS = 15 * 60_000;
const PREFIX = 'gpurent.draft.';

interface Kept {
  at: number;
  draft: unknown;
}

/**
 * Returns what stands in a form, like `useState`. It is kept in this tab while the reader is at a page of the control plane, such as to
 * prove who they are, and forgotten once the form is closed. `keepable` takes out what is secret; without it, give it no secret.
 */
export function useDraft<T>(
  form: string,
  initial: T,
  keepable: (draft: T) => T = (draft) => draft,
): [T, Dispatch<SetStateAction<T>>] {
  const key = `${PREFIX}${chosenOrganization() ?? ''}.${form}`;
  const [draft, setDraft] = useState(() => (keptAt(key) as T | undefined) ?? initial);
  useEffect(() => {
    const keep = () =>
      sessionStorage.setItem(key, JSON.stringify({ at: Date.now(), draft: keepable(draft) } satisfies Kept));
    window.addEventListener('pagehide', keep);
    return () => window.removeEventListener('pagehide', keep);
  }, [key, draft, keepable]);
  useEffect(() => () => sessionStorage.removeItem(key), [key]);
  return [draft, setDraft];
}

function keptAt(key: string): unknown {
  const text = sessionStorage.getItem(key);
  if (text === null) return undefined;
  const { at, draft } = JSON.parse(text) as Kept;
  return Date.now() - at <= LONGEST_MS ? draft : undefined;
}

/** Forgets every draft, before somebody else signs in. */
export function forgetDrafts(): void {
  for (const key of Object.keys(sessionStorage)) if (key.startsWith(PREFIX)) sessionStorage.removeItem(key);
}
