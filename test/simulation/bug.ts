export type Call = (...args: unknown[]) => unknown;
export type Module = Record<string, unknown>;

/** A module, by its path below the project, and what a bug makes of its exports. */
export type Change = readonly [path: string, change: (module: Module) => Module];

export interface Bug {
  /** The one that is to catch it. */
  invariant: string;
  bug: string;
  /** A seed that has caught it, where the first ones do not: tried first. */
  seed?: number;
  /** Whether it takes the simulation ten seconds or more to catch it: tried at night. */
  isSlow?: true;
  /** Whether renters and admins limit what is spent. */
  hasLimits?: true;
  changes: readonly Change[];
}

/** The export as it was before the bug. */
export const original = (module: Module, name: string) => module[name] as Call;
