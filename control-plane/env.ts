/** The only reader of the process environment: what the operator set, untouched. */
export function readEnvironment(): Record<string, string | undefined> {
  const names = Object.keys(process.env).filter((name) => name.startsWith('GPURENT_'));
  return Object.fromEntries(names.map((name) => [name, process.env[name]]));
}
