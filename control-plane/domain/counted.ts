/** Something that has happened, for whoever watches the marketplace. */
export type Counted =
  | { what: 'command'; kind: string; outcome: string }
  /** A payment, a refund, a credit, a dispute. */
  | { what: 'ledger'; kind: string };
