import { Command } from 'commander';
import { MOMENTS, READS, type Moment } from './faults.js';
import { partOf } from './part.js';
import { SCENARIOS, type Scenario } from './scenarios.js';
import { step } from './steps.js';

interface Given {
  part: string;
  every: string;
  whole?: true;
  reads?: true;
}

const program = new Command('simulate-steps')
  .description(
    'Plays every scenario with one thing going wrong, at each place where it can: nothing is lost, all settles.',
  )
  .option('--part <part>', 'one of so many parts, such as 1/2', '1/1')
  .option('--every <count>', 'leave out the places between', '1')
  .option('--whole', 'judge each world after all the time that it may take to settle, also one that has settled before')
  .option('--reads', 'also kill the control plane where it has only read since it last wrote')
  .action(async ({ part, every, whole, reads }: Given) => {
    const moments = MOMENTS.filter((moment) => reads || !READS.includes(moment));
    let worlds = 0;
    for (const scenario of partOf(part, SCENARIOS))
      for (const moment of moments) worlds += await play(scenario, moment, Number(every), whole === true);
    process.stdout.write(`${JSON.stringify({ part, worlds })}\n`);
  });

/** Answers how many worlds that took; says which of them failed, and has the process fail. */
async function play(scenario: Scenario, moment: Moment, every: number, isWhole: boolean): Promise<number> {
  let worlds = 0;
  for (let nth = 1, last = 1; nth <= last; nth += every) {
    const { moments, failure } = await step(scenario, moment, nth, { isWhole });
    last = Math.max(last, moments);
    worlds++;
    if (failure === undefined) continue;
    process.stdout.write(`${scenario.name}: ${moment}, number ${nth}: ${failure}\n`);
    process.exitCode = 1;
  }
  return worlds;
}

await program.parseAsync();
