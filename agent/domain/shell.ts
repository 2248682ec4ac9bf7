import type { EnvVar } from '../../shared/gen/gpurent/agent/v1/agent.js';

/** The names that a shell accepts for variables. */
const SHELL_NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;

/** Returns the variables whose names a shell accepts. */
export function shellVariables(env: readonly EnvVar[]): EnvVar[] {
  return env.filter(({ key }) => SHELL_NAME.test(key));
}

/** Returns shell code that exports these variables; any value is quoted safely. */
export function shellExports(env: readonly EnvVar[]): string {
  return shellVariables(env)
    .map(({ key, value }) => `export ${key}=${quoted(value)}\n`)
    .join('');
}

function quoted(value: string): string {
  return `'${value.replaceAll("'", `'\\''`)}'`;
}
