import { readFileSync } from 'node:fs';
// Not by its name: a Node that lacks it is to be refused first, by require-node.ts.
import util from 'node:util';
import { SetupError } from './coded-error.js';
import { fileTroubleOf } from './file-access.js';

/** A file of NAME=value lines. Throws SetupError, naming the setting that named the file. */
export function readSettingsFile(setting: string, file: string): Record<string, string | undefined> {
  try {
    return util.parseEnv(readFileSync(file, 'utf8'));
  } catch (error) {
    throw new SetupError(`${setting} ${file} cannot be read: ${fileTroubleOf(error)}`, { cause: error });
  }
}
