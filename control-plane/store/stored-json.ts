/**
 * Returns a stored JSON document, with `defaults` for the fields that it lacks because an older release wrote it. Every JSON
 * document of the database must be read through this function, so that a new field needs a default and old rows stay readable.
 */
export function readStored<T extends object>(defaults: T, stored: unknown): T {
  return { ...defaults, ...(stored as Partial<T> | null) };
}

/** Returns a stored list of documents, each read like {@link readStored}. */
export function readStoredList<T extends object>(defaults: T, stored: unknown): T[] {
  return ((stored as unknown[] | null) ?? []).map((entry) => readStored(defaults, entry));
}
