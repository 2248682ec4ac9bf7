import { dayIn, known, textIn, wordIn } from '../../data/forms/address.js';

export const TABS = ['overview', 'spend', 'transactions'] as const;
export type Tab = (typeof TABS)[number];
export const GROUPS = ['instance', 'template', 'api_key', 'member', 'label', 'day'] as const;
export type Group = (typeof GROUPS)[number];
export const KINDS = ['charge', 'credit', 'payment', 'refund', 'dispute'] as const;
export type Kind = (typeof KINDS)[number];
export const CHECKOUTS = ['paid', 'cancelled'] as const;
export type Checkout = (typeof CHECKOUTS)[number];

/** What the address of the billing page says. */
export interface BillingSearch {
  tab?: Tab;
  /** Spend: by what it is added up, and from which day of use to which, as YYYY-MM-DD in UTC. */
  by?: Group;
  from?: string;
  to?: string;
  /** Transactions: only of this kind, only of this instance, and from where on. */
  kind?: Kind;
  instance?: string;
  cursor?: string;
  /** Whether the form to add money is open. */
  pay?: true;
  /** How a checkout has ended, by the address to which the payment provider leads back. */
  checkout?: Checkout;
}

/** Reads the address; what it does not know is left out. */
export function billingSearch(given: Record<string, unknown>): BillingSearch {
  return known({
    tab: wordIn(TABS, given['tab']),
    by: wordIn(GROUPS, given['by']),
    kind: wordIn(KINDS, given['kind']),
    from: dayIn(given['from']),
    to: dayIn(given['to']),
    instance: textIn(given['instance']),
    cursor: textIn(given['cursor']),
    checkout: wordIn(CHECKOUTS, given['checkout']),
    pay: given['pay'] === true ? (true as const) : undefined,
  });
}
