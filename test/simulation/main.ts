import { Command } from 'commander';
import { simulate, type Outcome } from './run.js';

interface Given {
  seeds: string;
  steps: string;
  trace?: true;
  twice?: true;
}

const program = new Command('simulate')
  .description('Runs the marketplace in simulated time on a faulty world, once for each seed.')
  .option('--seeds <range>', 'one seed, or FIRST-LAST', '1-20')
  .option('--steps <count>', 'steps a seed', '200')
  .option('--trace', 'tell everything that happens')
  .option('--twice', 'run each seed twice, and compare')
  .action(async ({ seeds, steps, trace, twice }: Given) => {
    const tell = trace ? (line: string) => process.stdout.write(`${line}\n`) : undefined;
    const [first = 1, last = first] = seeds.split('-').map(Number);
    const totals: Record<string, number> = {};
    const failures: Outcome[] = [];
    for (let seed = first; seed <= last; seed++) {
      const outcome = await simulate(seed, Number(steps), tell && { tell });
      const failure = outcome.failure ?? (twice ? await differs(outcome, Number(steps)) : undefined);
      if (failure !== undefined) {
        failures.push(outcome);
        process.stdout.write(
          `seed ${seed} failed ${failure}\n  npm run simulate -- --seeds ${seed} --steps ${steps}\n`,
        );
      }
      for (const [name, count] of Object.entries(outcome.counts)) totals[name] = (totals[name] ?? 0) + Number(count);
    }
    process.stdout.write(`${JSON.stringify({ seeds: last - first + 1, failed: failures.length, ...totals })}\n`);
    if (failures.length > 0) process.exitCode = 1;
  });

async function differs({ seed, digest }: Outcome, steps: number): Promise<string | undefined> {
  const again = await simulate(seed, steps);
  return again.digest === digest ? undefined : 'to repeat itself';
}

await program.parseAsync();
