import { readFileSync } from 'node:fs';
import { SetupError, messageOf } from '../../shared/coded-error.js';

/** The two ways in which the command line gives an enrollment token. */
export interface TokenOptions {
  token?: string | undefined;
  /** A file that holds nothing but the token; `-` for standard input. */
  tokenFile?: string | undefined;
}

const STANDARD_INPUT = 0;

/**
 * Returns the enrollment token that the options give. Throws SetupError for both or neither of them, for a file that cannot be read, and
 * for a file that holds anything but one token; the message never has the content, because the file can be the wrong one.
 */
export function tokenOf({ token, tokenFile }: TokenOptions): string {
  if ((token === undefined) === (tokenFile === undefined))
    throw new SetupError('give the enrollment token by --token-file FILE or by --token TOKEN: one of the two');
  if (tokenFile === undefined) return token ?? '';
  const content = read(tokenFile).trim();
  if (!/^enr_[!-~]+$/.test(content))
    throw new SetupError(
      `--token-file ${tokenFile} holds no enrollment token: write only the token, which begins with enr_, into it`,
    );
  return content;
}

function read(file: string): string {
  try {
    return readFileSync(file === '-' ? STANDARD_INPUT : file, 'utf8');
  } catch (error) {
    throw new SetupError(`--token-file ${file} cannot be read: ${messageOf(error)}`, { cause: error });
  }
}
