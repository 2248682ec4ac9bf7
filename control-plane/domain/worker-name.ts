/** The workers that a use case can wake after its commit. */
export type WorkerName = 'account-links' | 'audit-out' | 'dispatch' | 'lost-machines' | 'mail' | 'settle' | 'webhooks';
