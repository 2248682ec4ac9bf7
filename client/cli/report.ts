import { CommanderError } from 'commander';
import { CliError } from './errors/cli-error.js';
import { EXIT } from './errors/exit-codes.js';
import { ExitWith } from './errors/exit-with.js';
import { explain } from './errors/explain.js';
import { jsonText, plain } from './terminal/plain-text.js';
import type { Terminal } from './terminal/terminal.js';

/** Says on stderr why a command has ended, for people or as one line of JSON. Returns the exit code. */
export function report(error: unknown, wantsJson: boolean, { stderr, interrupted }: Terminal): number {
  // Commander has said it already.
  if (error instanceof CommanderError) return EXIT.usage;
  if (error instanceof ExitWith) return error.exitCode;
  const isInterruption = interrupted.aborted && !(error instanceof CliError);
  const reason = isInterruption ? new CliError(EXIT.interrupted, 'interrupted') : error;
  const { exitCode, code, message, advice, requestId } = explain(reason);
  if (wantsJson) {
    stderr.write(`${jsonText({ exit_code: exitCode, code, message, advice, request_id: requestId }, 0)}\n`);
    return exitCode;
  }
  stderr.write(`gpurent: ${plain(message)}\n`);
  if (advice !== null) stderr.write(`  ${plain(advice)}\n`);
  if (requestId !== null) stderr.write(`  The operator finds it in the logs by ${plain(requestId)}.\n`);
  return exitCode;
}
