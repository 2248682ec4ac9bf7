import { homedir } from 'node:os';
import { isAbsolute, join } from 'node:path';

type Env = Readonly<Record<string, string | undefined>>;

const folder = (env: Env, variable: string, otherwise: string): string => {
  const given = env[variable];
  // The XDG specification: a relative path is ignored.
  const base = given !== undefined && isAbsolute(given) ? given : join(env['HOME'] ?? homedir(), otherwise);
  return join(base, 'gpurent');
};

/** Where the contexts are, which a person may copy to another machine. */
export const configFolder = (env: Env): string => folder(env, 'XDG_CONFIG_HOME', '.config');

/** Where the program notes what it needs later on this machine. */
export const stateFolder = (env: Env): string => folder(env, 'XDG_STATE_HOME', join('.local', 'state'));
