import { CommanderError } from 'commander';
import { CliError } from './errors/cli-error.js';
import { EXIT, type ExitCode } from './errors/exit-codes.js';
import { ExitWith } from './errors/exit-with.js';
import { createProgram } from './program.js';
import { jsonText, plain } from './terminal/plain-text.js';
import type { Terminal } from './terminal/terminal.js';

/** Runs the program with these arguments. Returns its exit code; whatever goes wrong is said on stderr. */
export async function main(args: readonly string[], terminal: Terminal): Promise<number> {
  const { program } = createProgram(terminal);
  try {
    await program.parseAsync(args.length === 0 ? ['--help'] : [...args], { from: 'user' });
    return EXIT.ok;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage;
    if (error instanceof ExitWith) return error.exitCode;
    const isInterruption = terminal.interrupted.aborted && !(error instanceof CliError);
    const reason = isInterruption ? new CliError(EXIT.interrupted, 'interrupted') : error;
    return report(reason, program.opts<{ json?: true }>().json === true, terminal);
  }
}

async function report(error: unknown, wantsJson: boolean, { stderr }: Terminal): Promise<ExitCode> {
  const { explain } = await import('./errors/explain.js');
  const { exitCode, code, message, advice, requestId } = explain(error);
  if (wantsJson) {
    stderr.write(`${jsonText({ exit_code: exitCode, code, message, advice, request_id: requestId }, 0)}\n`);
    return exitCode;
  }
  stderr.write(`gpurent: ${plain(message)}\n`);
  if (advice !== null) stderr.write(`  ${plain(advice)}\n`);
  if (requestId !== null) stderr.write(`  The operator finds it in the logs by ${plain(requestId)}.\n`);
  return exitCode;
}
