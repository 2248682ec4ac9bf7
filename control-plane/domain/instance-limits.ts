/** What a limit of an instance does when it is used up. */
export const ON_LIMIT = ['stop', 'destroy'] as const;
export type OnLimit = (typeof ON_LIMIT)[number];

/** The limits that a renter sets for one instance; null: none, and for `on_limit`: it stops. */
export interface InstanceLimits {
  /** Milliseconds since 1970. */
  stop_at: number | null;
  max_charge_micro: number | null;
  on_limit: OnLimit | null;
}
