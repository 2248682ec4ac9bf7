/** Which offers are shown. */
export interface PricesSearch {
  machine?: string;
  model?: string;
}

export function pricesSearch({ machine, model }: Record<string, unknown>): PricesSearch {
  return {
    ...(typeof machine === 'string' && machine !== '' ? { machine } : {}),
    ...(typeof model === 'string' && model !== '' ? { model } : {}),
  };
}
