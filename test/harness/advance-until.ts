import { setImmediate as nextTurn } from 'node:timers/promises';
import { eventually } from '../../scripts/eventually.js';

/** Resolves once somebody has handled all that was set off before, as far as no time has to pass for it. */
export type Party = () => Promise<unknown>;

interface Passing {
  /** What a step moves: a manual clock, or a control plane, whose workers run after each step. */
  clock: { advance(ms: number): void | Promise<void> };
  /** Milliseconds of a step. */
  stepMs: number;
  /** Asked one after the other before each step. What runs in this process alone needs none. */
  parties?: readonly Party[];
  /** After how many steps the clock stands still. */
  steps?: number;
}

/** Turns of the event loop in which a chain of callbacks in this process comes to its end. */
const TURNS = 4;
const STEPS = 1_000;
/** What no party has waited for may still be under way after the last step. */
const LATE_MS = 30_000;

/**
 * Moves the clock step by step until the value of `look` is neither undefined nor false, and returns that value. Before each look it
 * waits until the effects of the last step have been handled: so how much time passes on the clock does not depend on how fast the
 * machine is. Rejects after the last step with an error that names `what`, and at once if `look` throws.
 */
export async function advanceUntil<T>(
  what: string,
  { clock, stepMs, parties = [], steps = STEPS }: Passing,
  look: () => T | undefined | false | Promise<T | undefined | false>,
): Promise<T> {
  for (let step = 0; step < steps; step++) {
    for (const party of parties) await party();
    await eventLoop();
    const value = await looked(what, look);
    if (value !== undefined && value !== false) return value;
    await clock.advance(stepMs);
  }
  return eventually(`${what}, for which ${(steps * stepMs) / 1_000} s have passed on the clock`, look, LATE_MS);
}

/** Lets callbacks in this process run that are due, and those that they make due. */
export async function eventLoop(): Promise<void> {
  for (let turn = 0; turn < TURNS; turn++) await nextTurn();
}

/** Lets the calls to the file system come to their end that are under way in this process. */
export async function files(): Promise<void> {
  do await eventLoop();
  while (process.getActiveResourcesInfo().some((name) => name.startsWith('FSReq')));
}

async function looked<T>(what: string, look: () => T | Promise<T>): Promise<T> {
  try {
    return await look();
  } catch (cause) {
    throw new Error(`gave up waiting for ${what}`, { cause });
  }
}
