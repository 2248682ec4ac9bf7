import { CommanderError } from 'commander';
import { createProgram } from './program.js';
import type { Terminal } from './terminal/terminal.js';

/** Runs the program with these arguments. Returns its exit code; whatever goes wrong is said on stderr. */
export async function main(args: readonly string[], terminal: Terminal): Promise<number> {
  const { program } = createProgram(terminal);
  try {
    await program.parseAsync(args.length === 0 ? ['--help'] : [...args], { from: 'user' });
    return 0;
  } catch (error) {
    const isHelp = error instanceof CommanderError && error.exitCode === 0;
    if (isHelp) return 0;
    const { report } = await import('./report.js');
    return report(error, program.opts<{ json?: true }>().json === true, terminal);
  }
}
