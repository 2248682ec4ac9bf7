import { useQuery } from '@tanstack/react-query';
import { useEffect, useState, type Dispatch, type SetStateAction } from 'react';
import { me } from './queries.js';

/** A proof holds for so long; a sign-in takes less. */
const LONGEST_MS = 15 * 60_000;
const PREFIX = 'gpurent.draft.';

interface Kept {
  at: number;
  draft: unknown;
}

/**
 * Returns what stands in a form, like `useState`. It is kept in this tab while the reader is at a page of the control plane, such as to
 * prove who they are, and forgotten once the form is closed, or somebody else is signed in. Give it no secret.
 */
export function useDraft<T>(form: string, initial: T): [T, Dispatch<SetStateAction<T>>] {
  const user = useQuery(me).data;
  const whose = user && `${PREFIX}${user.user.id}.${user.active_organization_id ?? ''}.`;
  const key = whose && whose + form;
  const [draft, setDraft] = useState(initial);
  const [readFrom, setReadFrom] = useState<string>();
  // While it is not known who the reader is, nothing is theirs.
  if (whose !== undefined && key !== undefined && readFrom !== key) {
    setReadFrom(key);
    forgetDrafts(whose);
    setDraft((typed) => (keptAt(key) as T | undefined) ?? typed);
  }
  useEffect(() => {
    if (key === undefined) return;
    const keep = () => sessionStorage.setItem(key, JSON.stringify({ at: Date.now(), draft } satisfies Kept));
    window.addEventListener('pagehide', keep);
    return () => window.removeEventListener('pagehide', keep);
  }, [key, draft]);
  useEffect(() => {
    if (key !== undefined) return () => sessionStorage.removeItem(key);
    return undefined;
  }, [key]);
  return [draft, setDraft];
}

function keptAt(key: string): unknown {
  const text = sessionStorage.getItem(key);
  if (text === null) return undefined;
  const { at, draft } = JSON.parse(text) as Kept;
  return Date.now() - at <= LONGEST_MS ? draft : undefined;
}

/** Forgets every draft, or those that are not of `whose`. */
export function forgetDrafts(whose?: string): void {
  for (const key of Object.keys(sessionStorage))
    if (key.startsWith(PREFIX) && (whose === undefined || !key.startsWith(whose))) sessionStorage.removeItem(key);
}
