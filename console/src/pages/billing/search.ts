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

const DAY = /^\d{4}-\d\d-\d\d$/;

/** Reads the address; what it does not know is left out. */
export function billingSearch(given: Record<string, unknown>): BillingSearch {
  const { pay } = given;
  const found = {
    tab: TABS.find((each) => each === given['tab']),
    by: GROUPS.find((each) => each === given['by']),
    kind: KINDS.find((each) => each === given['kind']),
    ...{ from: textIn(given['from'], DAY), to: textIn(given['to'], DAY) },
    ...{ instance: textIn(given['instance']), cursor: textIn(given['cursor']) },
    checkout: CHECKOUTS.find((each) => each === given['checkout']),
    pay: pay === true ? (true as const) : undefined,
  };
  return Object.fromEntries(Object.entries(found).filter(([, value]) => value !== undefined));
}

function textIn(value: unknown, pattern = /./): string | undefined {
  return typeof value === 'string' && pattern.test(value) ? value : undefined;
}
