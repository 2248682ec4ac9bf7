import { Command } from 'commander';
import { Session } from 'node:inspector/promises';
import { simulate } from './run.js';
import { hasLimits } from './sim-limits.js';

const OURS = /\/dist\/(control-plane|agent|shared)\//;
/** Which instance, host or moment it was makes no two happenings different. */
const PARTICULARS = /[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|\d+/g;

interface Reached {
  what: ReadonlySet<string>;
  /** Of processor time. */
  seconds: number;
}

interface Chosen {
  seed: number;
  /** How much of what it reaches no seed before it does. */
  added: number;
  seconds: number;
}

const program = new Command('choose-seeds')
  .description('Chooses the seeds that together reach most for the processor time, best first: for chosen-seeds.ts.')
  .option('--seeds <count>', 'how many to choose from', '300')
  .option('--steps <count>', 'steps a seed', '500')
  .option('--most <count>', 'how many to choose', '8')
  .action(async ({ seeds, steps, most }: Record<'seeds' | 'steps' | 'most', string>) => {
    const reached = new Map<number, Reached>();
    const session = new Session();
    session.connect();
    await session.post('Profiler.enable');
    await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true });
    for (let seed = 1; seed <= Number(seeds); seed++) {
      const happened: string[] = [];
      const tell = (line: string) => void happened.push(line.replace(PARTICULARS, ''));
      const before = process.cpuUsage();
      await simulate(seed, Number(steps), { tell, hasLimits: hasLimits(seed) });
      const { user, system } = process.cpuUsage(before);
      const what = new Set([...(await coveredBy(session)), ...pairsOf(happened)]);
      reached.set(seed, { what, seconds: (user + system) / 1e6 });
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

/** The seed that adds most to those before it, for the time that it takes, comes next. */
function choose(reached: Map<number, Reached>, most: number): Chosen[] {
  const chosen: Chosen[] = [];
  const known = new Set<string>();
  while (chosen.length < most && reached.size > 0) {
    const next = [...reached]
      .map(([seed, { what, seconds }]) => ({ seed, added: [...what].filter((one) => !known.has(one)).length, seconds }))
      .reduce((best, one) => (one.added / one.seconds > best.added / best.seconds ? one : best));
    chosen.push(next);
    for (const what of reached.get(next.seed)?.what ?? []) known.add(what);
    reached.delete(next.seed);
  }
  return chosen;
}

function print(chosen: readonly Chosen[]): void {
  for (const { seed, added, seconds } of chosen)
    process.stdout.write(`${seed} (${added} new in ${seconds.toFixed(1)} s)\n`);
  process.stdout.write(`${chosen.map(({ seed }) => seed).join(', ')}\n`);
}

await program.parseAsync();
