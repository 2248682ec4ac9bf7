import { known, textIn } from '../../../../data/forms/address.js';

/** Which payout is shown: its id at the payment provider. */
export interface PayoutsSearch {
  payout?: string;
}

export function payoutsSearch({ payout }: Record<string, unknown>): PayoutsSearch {
  return known({ payout: textIn(payout, 128) });
}
