import type { EnvVar } from '../../shared/gen/gpurent/agent/v1/agent.js';

/** Another name is none that a shell could be told. */
const SHELL_NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;

/** The variables that a shell can be told. */
export function shellVariables(env: readonly EnvVar[]): EnvVar[] {
  return env.filter(({ key }) => SHELL_NAME.test(key));
}

/** What a shell reads to have these variables, whatever is in their values. */
export function shellExports(env: readonly EnvVar[]): string {
  return shellVariables(env)
    .map(({ key, value }) => `export ${key}=${quoted(value)}\n`)
    .join('');
}

function quoted(value: string): string {
  return `'${value.replaceAll("'", `'\\''`)}'`;
}
