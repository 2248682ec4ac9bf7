import { useQuery } from '@tanstack/react-query';
import { useEffect, useMemo, useState, type Dispatch, type SetStateAction } from 'react';
import { draftKey, dropDraft, keepDraft, keptDraft } from './kept-drafts.js';
import { me } from './queries.js';

/**
 * Returns what stands in a form, like `useState`. It is kept in this tab while the reader is at a page of the control plane, such as to
 * prove who they are, and forgotten once the form is closed, or somebody else is signed in. `keepable`
 * takes out what is secret; without it, give it no secret.
 */
export function useDraft<T extends object | string>(
  form: string,
  initial: T,
  keepable: (draft: T) => T = asItIs,
): [T, Dispatch<SetStateAction<T>>] {
  const { data } = useQuery(me);
  // While it is not known who the reader is, nothing is theirs.
  const key = data && draftKey(data.user.id, data.active_organization_id, form);
  const kept = useMemo(() => (key === undefined ? undefined : (keptDraft(key) as T | undefined)), [key]);
  const [first] = useState(initial);
  const [typed, setTyped] = useState<T>();
  const begun = kept ?? first;
  const draft = typed ?? begun;
  useEffect(() => {
    if (key === undefined) return;
    const keep = () => keepDraft(key, keepable(draft));
    window.addEventListener('pagehide', keep);
    return () => window.removeEventListener('pagehide', keep);
  }, [key, draft, keepable]);
  useEffect(() => {
    if (key === undefined) return;
    return () => dropDraft(key);
  }, [key]);
  const setDraft = (next: SetStateAction<T>) =>
    setTyped((before) => (typeof next === 'function' ? (next as (before: T) => T)(before ?? begun) : next));
  return [draft, setDraft];
}

function asItIs<T>(draft: T): T {
  return draft;
}
