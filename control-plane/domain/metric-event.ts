import type { HostRefusal } from './machines/host-refusal.js';

/** An event that the metrics count. */
export type MetricEvent =
  | { what: 'command'; kind: string; outcome: string; failure?: CommandFailure }
  /** An instance is destroyed. */
  | { what: 'destroyed' }
  /** A payment, a refund, a credit, a dispute. */
  | { what: 'ledger'; kind: string }
  /** An attempt to deliver a webhook: `retried` is one that has failed and is not the last. */
  | { what: 'webhook'; outcome: 'delivered' | 'retried' | 'failed' }
  /** A mail is sent, or is given up. */
  | { what: 'mail'; outcome: 'sent' | 'failed' }
  /** A host or one of its messages is refused. */
  | { what: 'host-refused'; reason: HostRefusal };

/** A failed command, with the agent's code for the failure. */
export interface CommandFailure {
  code: string;
  machineId: string;
  /** Null for the command of a workload in quarantine. */
  organizationId: string | null;
}
