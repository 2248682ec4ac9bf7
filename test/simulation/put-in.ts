import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterEach, expect, it, vi } from 'vitest';
import type { Bug } from './bug.js';

const SEEDS = Array.from({ length: 60 }, (_, index) => index + 1);
const STEPS = 250;

/** A test for each bug: with it in the code, its invariant is broken. */
export function describeBugs(bugs: readonly Bug[]): void {
  let mocked: string[] = [];
  afterEach(() => {
    for (const path of mocked) vi.doUnmock(path);
    mocked = [];
    vi.resetModules();
  });

  function putIn({ changes }: Bug): void {
    vi.resetModules();
    for (const [name, change] of changes) {
      const path = `../../${name}.js`;
      expect(existsSync(fileURLToPath(new URL(`../../${name}.ts`, import.meta.url))), name).toBe(true);
      mocked.push(path);
      vi.doMock(path, async (importOriginal) => {
        const module = await importOriginal<Record<string, unknown>>();
        const changed = change(module);
        // A name that the module does not export would put nothing in.
        expect(Object.keys(module)).toEqual(expect.arrayContaining(Object.keys(changed)));
        return { ...module, ...changed };
      });
    }
  }

  it.each(bugs)('by “$invariant”: $bug', { timeout: 300_000 }, async (bug) => {
    putIn(bug);
    const broken = await import('./run.js');
    let failure: string | undefined;
    for (const [tried, seed] of [bug.seed ?? [], SEEDS].flat().entries()) {
      ({ failure } = await broken.simulate(seed, STEPS, { only: bug.invariant, hasLimits: bug.hasLimits ?? false }));
      if (failure === undefined) continue;
      // What a seed does changes with the simulation: then another one is quicker.
      if (tried > 2) process.stdout.write(`${bug.bug}: only seed ${seed} has caught it, note that as its seed\n`);
      break;
    }
    expect(failure).toContain(`${bug.invariant}: `);
  });
}
