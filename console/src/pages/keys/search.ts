/** What the address of the keys says: which form is open. */
export interface KeysSearch {
  add?: 'ssh' | 'api';
  /** The id of the API key whose caps are shown. */
  caps?: string;
}

/** Reads the address; what it does not know is left out. */
export function keysSearch({ add, caps }: Record<string, unknown>): KeysSearch {
  return {
    ...(add === 'ssh' || add === 'api' ? { add } : {}),
    ...(typeof caps === 'string' && caps !== '' ? { caps } : {}),
  };
}
