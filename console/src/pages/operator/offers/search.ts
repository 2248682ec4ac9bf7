export interface OffersSearch {
  /** The machine for which an offer is being made. */
  machine?: string;
  /** Only the offers that were withdrawn; without it, those on the market. */
  withdrawn?: true;
}

export function offersSearch({ machine, withdrawn }: Record<string, unknown>): OffersSearch {
  return { ...(typeof machine === 'string' ? { machine } : {}), ...(withdrawn === true ? { withdrawn } : {}) };
}
