import { readFileSync } from 'node:fs';
// Not a named import: in an older Node without parseEnv it would fail before require-node.ts can refuse that Node.
import util from 'node:util';
import { SetupError } from './coded-error.js';
import { fileTroubleOf } from './file-access.js';

/** Reads a file of NAME=value lines. Throws SetupError, which names `setting`, the setting with the file's path. */
export function readSettingsFile(setting: string, file: string): Record<string, string | undefined> {
  try {
    return util.parseEnv(readFileSync(file, 'utf8'));
  } catch (error) {
    throw new SetupError(`${setting} ${file} cannot be read: ${fileTroubleOf(error)}`, { cause: error });
  }
}

/** Says that a program knows none of these settings: all of them at once, so that nobody finds them one by one. */
export function unknownSettings(names: readonly string[], program: string): string {
  const what = names.length === 1 ? 'is not a setting' : 'are not settings';
  return `${names.join(', ')} ${what} of ${program}; remove ${names.length === 1 ? 'it or correct its name' : 'them or correct their names'}`;
}
