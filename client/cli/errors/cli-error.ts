import { EXIT, type ExitCode } from './exit-codes.js';

/** Why a command ends without success, for people: what is wrong, and in `advice` what to do. */
export class CliError extends Error {
  override readonly name = 'CliError';

  constructor(
    readonly exitCode: ExitCode,
    message: string,
    readonly advice: string | null = null,
  ) {
    super(message);
  }
}

export const usageError = (message: string, advice: string | null = null) => new CliError(EXIT.usage, message, advice);
