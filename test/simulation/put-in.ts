import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, vi } from 'vitest';
import type { Bug, Module } from './bug.js';
import type { simulate } from './run.js';
import type { Scenario } from './scenarios.js';
import type { step } from './steps.js';

/** The simulation, and what puts bugs into the code that it runs. */
export interface Broken {
  simulate: typeof simulate;
  step: typeof step;
  scenarios: readonly Scenario[];
  /** Puts one in, instead of the one before; undefined: none is in. */
  putIn: (bug: Bug | undefined) => void;
}

/** Loads the simulation so that each of the bugs can be put in: once for all, because that takes longer than most simulations. */
export async function loadWith(bugs: readonly Bug[]): Promise<Broken> {
  let present: Bug | undefined;
  vi.resetModules();
  for (const name of new Set(bugs.flatMap(({ changes }) => changes.map(([path]) => path)))) {
    expect(existsSync(fileURLToPath(new URL(`../../${name}.ts`, import.meta.url))), name).toBe(true);
    vi.doMock(`../../${name}.js`, async (importOriginal) => {
      const module = await importOriginal<Module>();
      return { ...module, ...changeable(module, changesOf(bugs, name, module), () => present) };
    });
  }
  const { simulate } = await import('./run.js');
  const { step } = await import('./steps.js');
  const [{ SCENARIOS }, { BUG_SCENARIOS }] = [await import('./scenarios.js'), await import('./bug-scenarios.js')];
  return { simulate, step, scenarios: [...SCENARIOS, ...BUG_SCENARIOS], putIn: (bug) => (present = bug) };
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
