import { readFileSync } from 'node:fs';
import { parseEnv } from 'node:util';
import { SetupError, messageOf } from '../shared/coded-error.js';

type Settings = Record<string, string | undefined>;

/** The only reader of the process environment. A file of NAME=value lines, if one is named, stands below it. */
export function readEnvironment(): Settings {
  const file = process.env['GPURENT_AGENT_CONFIG'];
  const names = Object.keys(process.env).filter((name) => name.startsWith('GPURENT_AGENT_') || name === 'DOCKER_HOST');
  return { ...(file ? readSettings(file) : {}), ...Object.fromEntries(names.map((name) => [name, process.env[name]])) };
}

function readSettings(file: string): Settings {
  try {
    return parseEnv(readFileSync(file, 'utf8'));
  } catch (error) {
    throw new SetupError(`GPURENT_AGENT_CONFIG ${file} cannot be read: ${messageOf(error)}`, { cause: error });
  }
}
