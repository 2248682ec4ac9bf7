import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { beforeAll, expect, it, vi } from 'vitest';
import type { Bug, Module } from './bug.js';

const MOST_STEPS = 250;
/** What a seed does changes with the simulation. Then many seeds that take few steps are quicker than one that takes many. */
const TRIES = [
  { seeds: 12, steps: 30 },
  { seeds: 12, steps: 80 },
  { seeds: 60, steps: MOST_STEPS },
].flatMap(({ seeds, steps }) => Array.from({ length: seeds }, (_, index) => ({ seed: index + 1, steps })));

/** A test for each bug: with it in the code, its invariant is broken. */
export function describeBugs(bugs: readonly Bug[]): void {
  let present: Bug | undefined;
  let broken: typeof import('./run.js');

  // The modules are loaded once for all bugs, because loading them takes longer than most simulations.
  beforeAll(async () => {
    vi.resetModules();
    for (const name of new Set(bugs.flatMap(({ changes }) => changes.map(([path]) => path)))) {
      expect(existsSync(fileURLToPath(new URL(`../../${name}.ts`, import.meta.url))), name).toBe(true);
      vi.doMock(`../../${name}.js`, async (importOriginal) => {
        const module = await importOriginal<Module>();
        return { ...module, ...changeable(module, changesOf(bugs, name, module), () => present) };
      });
    }
    broken = await import('./run.js');
  });

  it.each(bugs)('by “$invariant”: $bug', { timeout: 300_000 }, async (bug) => {
    present = bug;
    let failure: string | undefined;
    const { seed, steps = MOST_STEPS, invariant, hasLimits = false } = bug;
    const noted = seed === undefined ? [] : [{ seed, steps }];
    for (const [tried, next] of [...noted, ...TRIES].entries()) {
      ({ failure } = await broken.simulate(next.seed, next.steps, { only: invariant, hasLimits }));
      if (failure === undefined) continue;
      if (tried > 0) console.warn(`${bug.bug}: note what has caught it now: ${JSON.stringify(next)}`);
      break;
    }
    expect(failure).toContain(`${bug.invariant}: `);
  });
}

type ChangesOf = ReadonlyMap<Bug, Module>;

/** Returns what each bug makes of the exports of a module. */
function changesOf(bugs: readonly Bug[], name: string, module: Module): ChangesOf {
  const changes = new Map<Bug, Module>();
  for (const bug of bugs) {
    for (const [path, change] of bug.changes) if (path === name) changes.set(bug, change(module));
    // A name that the module does not export would put nothing in.
    expect(Object.keys(module)).toEqual(expect.arrayContaining(Object.keys(changes.get(bug) ?? {})));
  }
  return changes;
}

/** Returns the exports that some bug changes: each is what the bug that is present makes of it, and else the original. */
function changeable(module: Module, changes: ChangesOf, present: () => Bug | undefined): Module {
  const names = new Set([...changes.values()].flatMap((changed) => Object.keys(changed)));
  return Object.fromEntries(
    [...names].map((name) => {
      const current = () => {
        const bug = present();
        return ((bug && changes.get(bug))?.[name] ?? module[name]) as object;
      };
      return [name, standIn(current)];
    }),
  );
}

/** Returns an object that is called, constructed and read as the current one. */
function standIn(current: () => object): object {
  const handler: ProxyHandler<object> = {
    apply: (_, self, args) => Reflect.apply(current() as () => unknown, self, args) as unknown,
    construct: (_, args, target) =>
      Reflect.construct(
        current() as new () => object,
        args,
        target === itself ? (current() as new () => object) : target,
      ) as object,
    get: (_, name) => Reflect.get(current(), name) as unknown,
  };
  const itself: object = new Proxy(function () {}, handler);
  return itself;
}
