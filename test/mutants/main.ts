import { Command } from 'commander';
import { apply, type Mutant } from './mutant.js';
import { MUTANTS } from './mutants.js';
import { runTests } from './run-tests.js';
import { copySources } from './tree.js';

const LIMIT_MS = 180_000;

const program = new Command('mutants')
  .description('Puts known faults into a copy of the sources, one at a time, and tells whether the tests notice each.')
  .argument('[names...]', 'those to put in; all of them without a name')
  .action(async (names: string[]) => {
    const unknown = names.find((name) => MUTANTS.every((mutant) => mutant.name !== name));
    if (unknown !== undefined) program.error(`there is no mutant "${unknown}"`);
    const chosen = MUTANTS.filter(({ name }) => names.length === 0 || names.includes(name));
    // So that the copy goes, too, where this is interrupted.
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => program.error(signal));
    const { folder, remove } = copySources(process.cwd());
    process.once('exit', remove);
    // One that does not apply is told of at once.
    for (const mutant of chosen) apply(mutant, folder)();
    await expectGreen(folder, chosen);
    let survived = 0;
    for (const mutant of chosen) if (!(await isCaught(folder, mutant))) survived++;
    process.stdout.write(`${JSON.stringify({ mutants: chosen.length, survived })}\n`);
    if (survived > 0) process.exitCode = 1;
  });

/** Without a fault all tests pass in the copy, too: otherwise it would not be the mutant that they notice. */
async function expectGreen(folder: string, mutants: readonly Mutant[]): Promise<void> {
  const files = [...new Set(mutants.flatMap(({ tests }) => tests))];
  const { total, failed, broken } = await runTests(folder, files, LIMIT_MS * 2);
  if (total === 0 || failed.length + broken.length > 0)
    program.error(`without a mutant the tests fail: ${[...failed, ...broken].join('; ')}`);
}

async function isCaught(folder: string, mutant: Mutant): Promise<boolean> {
  const takeOut = apply(mutant, folder);
  const began = performance.now();
  const { failed, broken } = await runTests(folder, mutant.tests, LIMIT_MS);
  takeOut();
  const seconds = ((performance.now() - began) / 1_000).toFixed(1).padStart(6);
  const caught = failed.length > 0 && broken.length === 0;
  const words = caught ? `caught by "${failed[0]}"` : `NOT CAUGHT by ${mutant.tests.join(', ')} ${broken.join('; ')}`;
  process.stdout.write(`${seconds} s  ${mutant.name}: ${words.trim()}\n`);
  return caught;
}

await program.parseAsync();
