/** Something that has happened, for whoever watches the marketplace. */
export type MetricEvent =
  | { what: 'command'; kind: string; outcome: string; failure?: CommandFailure }
  /** A payment, a refund, a credit, a dispute. */
  | { what: 'ledger'; kind: string };

/** That a command has failed: by what its host says, on which machine, and whose it was (null: of a workload in quarantine). */
export interface CommandFailure {
  code: string;
  machineId: string;
  organizationId: string | null;
}
