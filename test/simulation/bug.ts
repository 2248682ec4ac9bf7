import type { Moment } from './faults.js';

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
  /** A scenario that catches it whatever the seeds do, by its name: played instead of them. It holds without the bug. */
  scenario?: string;
  /** What goes wrong in the scenario, besides what it does itself: which of the moments of a kind, counted from 1. */
  fault?: readonly [moment: Moment, nth: number];
  changes: readonly Change[];
}

/** The export as it was before the bug. */
export const original = (module: Module, name: string) => module[name] as Call;

/** The export does what it did, and then something more. */
export const after = (path: string, name: string, more: Call): Change => [
  path,
  (module) => ({
    [name]: (...args: unknown[]) => {
      const answer = original(module, name)(...args);
      more(...args);
      return answer;
    },
  }),
];

/** A class of which some methods are others. */
export const overriding = (
  path: string,
  name: string,
  methods: (prototype: Record<string, Call>) => Module,
): Change => [
  path,
  (module) => {
    const Original = module[name] as new (...args: unknown[]) => object;
    const Changed = class extends Original {};
    Object.assign(Changed.prototype, methods(Original.prototype as Record<string, Call>));
    return { [name]: Changed };
  },
];
