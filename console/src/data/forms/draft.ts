import { useQuery } from '@tanstack/react-query';
import { useEffect, useEffectEvent, useMemo, useRef, useState, type Dispatch, type SetStateAction } from 'react';
import { draftKey, dropDraft, keepDraft, keptDraft } from '../api/kept-drafts.js';
import { me } from '../api/queries.js';

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
  const { key, draft, setDraft } = useTyped(form, initial);
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
  return [draft, setDraft];
}

/**
 * Returns what stands in a form, like {@link useDraft}, and what forgets it: call that once it was sent. Until then it is kept also while
 * the reader is at another page of the console, such as to add money.
 */
export function useLastingDraft<T extends object | string>(
  form: string,
  initial: T,
  keepable: (draft: T) => T,
): [T, Dispatch<SetStateAction<T>>, () => void] {
  const { key, draft, isTyped, setDraft } = useTyped(form, initial);
  const isSent = useRef(false);
  const keep = useEffectEvent((its: string) => {
    if (isTyped && !isSent.current) keepDraft(its, keepable(draft));
  });
  useEffect(() => {
    if (key === undefined) return;
    const leave = () => keep(key);
    window.addEventListener('pagehide', leave);
    return () => {
      window.removeEventListener('pagehide', leave);
      leave();
    };
  }, [key]);
  const forget = () => {
    isSent.current = true;
    if (key !== undefined) dropDraft(key);
  };
  return [draft, setDraft, forget];
}

/** Returns what stands in a form, whether it was typed since the form was opened, and where it is kept; undefined: nowhere yet. */
function useTyped<T extends object | string>(form: string, initial: T) {
  const { data } = useQuery(me);
  // While it is not known who the reader is, nothing is theirs.
  const key = data && draftKey(data.user.id, data.active_organization_id, form);
  const kept = useMemo(() => (key === undefined ? undefined : (keptDraft(key) as T | undefined)), [key]);
  const [first] = useState(initial);
  const [typed, setTyped] = useState<T>();
  const begun = kept ?? first;
  const setDraft: Dispatch<SetStateAction<T>> = (next) =>
    setTyped((before) => (typeof next === 'function' ? (next as (before: T) => T)(before ?? begun) : next));
  return { key, draft: typed ?? begun, isTyped: typed !== undefined || kept !== undefined, setDraft };
}

function asItIs<T>(draft: T): T {
  return draft;
}
