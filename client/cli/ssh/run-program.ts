import { CliError } from '../errors/cli-error.js';
import { EXIT } from '../errors/exit-codes.js';
import type { Terminal } from '../terminal/terminal.js';

/** Runs a program of OpenSSH in this terminal, and returns its exit code. Throws a CliError if it is not installed. */
export async function runProgram(terminal: Terminal, program: string, args: readonly string[]): Promise<number> {
  try {
    return await terminal.run(program, args);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    throw new CliError(
      EXIT.failed,
      `there is no program ${program} on this machine`,
      'Install OpenSSH: apt-get install openssh-client',
    );
  }
}
