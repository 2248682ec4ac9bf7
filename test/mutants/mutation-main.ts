import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { Argument, Command } from 'commander';

const STRYKER = 'node_modules/@stryker-mutator/core/bin/stryker.js';

interface Report {
  files: Record<string, { mutants: { status: string }[] }>;
}

const program = new Command('mutation')
  .description('Changes each line in many ways and prints how many of the changes the tests notice, in percent.')
  .addArgument(new Argument('<part>', 'whose lines').choices(['domain', 'money']))
  .action(async (part: string) => {
    const stryker = spawn(process.execPath, [STRYKER, 'run', `test/mutants/stryker.${part}.config.js`], {
      stdio: 'inherit',
    });
    const [code] = (await once(stryker, 'exit')) as [number | null];
    const report = JSON.parse(readFileSync(`.local/mutation/${part}.json`, 'utf8')) as Report;
    process.stdout.write(`${JSON.stringify({ mutation: part, ...tally(report) })}\n`);
    process.exitCode = code ?? 1;
  });

/** What makes the tests run for ever is noticed, too. */
function tally({ files }: Report): { caught: number; survived: number; score: number } {
  const statuses = Object.values(files).flatMap(({ mutants }) => mutants.map(({ status }) => status));
  const count = (...wanted: string[]) => statuses.filter((status) => wanted.includes(status)).length;
  const [caught, survived] = [count('Killed', 'Timeout'), count('Survived', 'NoCoverage')];
  return { caught, survived, score: Math.round((caught / (caught + survived)) * 10_000) / 100 };
}

await program.parseAsync();
