/**
 * A stored document, with `defaults` where it says nothing: an older release did not know every field. Every document that the
 * store keeps as JSON is read by this, so that a field that is added needs a default and breaks nothing that is there.
 */
export function readStored<T extends object>(defaults: T, stored: unknown): T {
  return { ...defaults, ...(stored as Partial<T> | null) };
}

/** The same for a list of documents. */
export function readStoredList<T extends object>(defaults: T, stored: unknown): T[] {
  return ((stored as unknown[] | null) ?? []).map((entry) => readStored(defaults, entry));
}
