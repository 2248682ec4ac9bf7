import { Command } from 'commander';
import { Session } from 'node:inspector/promises';
import { simulate } from './run.js';

const OURS = /\/dist\/(control-plane|agent|shared)\//;
/** Which instance, host or moment it was makes no two happenings different. */
const PARTICULARS = /[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|\d+/g;

const program = new Command('choose-seeds')
  .description('Chooses the seeds that together reach what all of them reach, best first: for chosen-seeds.ts.')
  .option('--seeds <count>', 'how many to choose from', '300')
  .option('--steps <count>', 'steps a seed', '500')
  .option('--most <count>', 'how many to choose', '16')
  .action(async ({ seeds, steps, most }: Record<'seeds' | 'steps' | 'most', string>) => {
    const reached = new Map<number, Set<string>>();
    const session = new Session();
    session.connect();
    await session.post('Profiler.enable');
    await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true });
    for (let seed = 1; seed <= Number(seeds); seed++) {
      const happened: string[] = [];
      await simulate(seed, Number(steps), { tell: (line) => happened.push(line.replace(PARTICULARS, '')) });
      reached.set(seed, new Set([...(await coveredBy(session)), ...pairsOf(happened)]));
    }
    print(choose(reached, Number(most)));
  });

/** The stretches of our code that ran since this was asked last, as `FILE OFFSET`, in steps of a few characters. */
async function coveredBy(session: Session): Promise<string[]> {
  const { result } = await session.post('Profiler.takePreciseCoverage');
  return result
    .filter(({ url }) => OURS.test(url))
    .flatMap(({ url, functions }) => {
      const ran = new Map<number, boolean>();
      // Outer ranges come before those within them.
      for (const { startOffset, endOffset, count } of functions.flatMap(({ ranges }) => ranges))
        for (let at = Math.ceil(startOffset / 16) * 16; at < endOffset; at += 16) ran.set(at, count > 0);
      return [...ran].filter(([, is]) => is).map(([at]) => `${url} ${at}`);
    });
}

/** What happened right after what. */
function pairsOf(happened: string[]): string[] {
  return happened.map((what, index) => `${happened[index - 1]} > ${what}`);
}

/** The seed that adds most to those before it comes next. */
function choose(reached: Map<number, Set<string>>, most: number): [seed: number, added: number][] {
  const chosen: [number, number][] = [];
  const known = new Set<string>();
  while (chosen.length < most && reached.size > 0) {
    const added = [...reached].map(([seed, what]): [number, number] => [
      seed,
      [...what].filter((one) => !known.has(one)).length,
    ]);
    const [seed, count] = added.reduce((best, one) => (one[1] > best[1] ? one : best));
    chosen.push([seed, count]);
    for (const what of reached.get(seed) ?? []) known.add(what);
    reached.delete(seed);
  }
  return chosen;
}

function print(chosen: [seed: number, added: number][]): void {
  for (const [seed, added] of chosen) process.stdout.write(`${seed} (${added} new)\n`);
  process.stdout.write(`${chosen.map(([seed]) => seed).join(', ')}\n`);
}

await program.parseAsync();
