import { Command } from 'commander';
import { CHOSEN_SEEDS } from './chosen-seeds.js';
import { partOf } from './part.js';
import { simulate, type Outcome } from './run.js';
import { hasLimits } from './sim-limits.js';

interface Given {
  seeds: string;
  steps: string;
  part: string;
  trace?: true;
  twice?: true;
}

const program = new Command('simulate')
  .description('Runs the marketplace in simulated time on a faulty world, once for each seed.')
  .option(
    '--seeds <range>',
    'one seed, FIRST-LAST, "chosen" (those that together reach most of the code), or "chosen:COUNT"',
    '1-20',
  )
  .option('--steps <count>', 'steps a seed', '200')
  .option('--part <part>', 'one of so many parts, such as 1/2', '1/1')
  .option('--trace', 'tell everything that happens')
  .option('--twice', 'run each seed twice, and compare')
  .action(async ({ seeds: range, steps, part, trace, twice }: Given) => {
    const tell = trace ? (line: string) => process.stdout.write(`${line}\n`) : undefined;
    const seeds = partOf(part, seedsOf(range));
    const totals: Record<string, number> = {};
    const failures: Outcome[] = [];
    for (const seed of seeds) {
      const outcome = await simulate(seed, Number(steps), { hasLimits: hasLimits(seed), ...(tell ? { tell } : {}) });
      const failure = outcome.failure ?? (twice ? await differs(outcome, Number(steps)) : undefined);
      if (failure !== undefined) {
        failures.push(outcome);
        process.stdout.write(
          `seed ${seed} failed ${failure}\n  npm run simulate -- --seeds ${seed} --steps ${steps}\n`,
        );
      }
      for (const [name, count] of Object.entries(outcome.counts)) totals[name] = (totals[name] ?? 0) + Number(count);
    }
    process.stdout.write(`${JSON.stringify({ seeds: seeds.length, failed: failures.length, ...totals })}\n`);
    if (failures.length > 0) process.exitCode = 1;
  });

function seedsOf(range: string): number[] {
  const [, most] = /^chosen(?::(\d+))?$/.exec(range) ?? [];
  if (range.startsWith('chosen')) return CHOSEN_SEEDS.slice(0, most === undefined ? undefined : Number(most));
  const [first = 1, last = first] = range.split('-').map(Number);
  return Array.from({ length: last - first + 1 }, (_, index) => first + index);
}

async function differs({ seed, digest }: Outcome, steps: number): Promise<string | undefined> {
  const again = await simulate(seed, steps, { hasLimits: hasLimits(seed) });
  return again.digest === digest ? undefined : 'to repeat itself';
}

await program.parseAsync();
