import { useEffect, useRef, type RefObject } from 'react';

/**
 * Returns the reference for a form whose first wrong field gets the focus, so that a reader who does not see the page is where something
 * is to be done: after each of the `tries` that the form itself refuses, and after each `refusal` of the control plane.
 */
export function useFirstFault(tries: number, refusal: unknown): RefObject<HTMLFormElement | null> {
  const form = useRef<HTMLFormElement>(null);
  useEffect(() => {
    form.current?.querySelector<HTMLElement>('[aria-invalid=true]')?.focus();
  }, [tries, refusal]);
  return form;
}
