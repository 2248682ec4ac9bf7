export interface OffersSearch {
  /** The machine for which an offer is being made. */
  machine?: string;
}

export function offersSearch({ machine }: Record<string, unknown>): OffersSearch {
  return typeof machine === 'string' ? { machine } : {};
}
