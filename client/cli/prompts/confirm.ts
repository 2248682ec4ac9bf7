import { CliError, usageError } from '../errors/cli-error.js';
import { EXIT } from '../errors/exit-codes.js';
import type { Invocation } from '../invocation/invocation.js';
import { plain } from '../terminal/plain-text.js';

/** Lets a person confirm something that costs or destroys. Throws a CliError unless they do, or have given --yes. */
export async function confirm({ terminal }: Invocation, yes: true | undefined, what: string): Promise<void> {
  if (yes) return;
  if (!terminal.isInteractive) throw usageError(`${what}: nobody can be asked here`, 'Repeat the command with --yes.');
  const { agree } = await import('./ask.js');
  if (!(await agree(terminal, { message: `${plain(what)}?`, initialValue: false })))
    throw new CliError(EXIT.interrupted, 'nothing was changed');
}
