export type Call = (...args: unknown[]) => unknown;
export type Module = Record<string, unknown>;

/** A module, by its path below the project, and what a bug makes of its exports. */
export type Change = readonly [path: string, change: (module: Module) => Module];

export interface Bug {
  /** The one that is to catch it. */
  invariant: string;
  bug: string;
  /** The seed that has caught it soonest: tried first. Not needed where seed 1 catches it within thirty steps. */
  seed?: number;
  /** How many steps that seed takes, where it is judged after the last one. */
  steps?: number;
  /** Whether renters and admins limit what is spent. */
  hasLimits?: true;
  changes: readonly Change[];
}

/** The export as it was before the bug. */
export const original = (module: Module, name: string) => module[name] as Call;
