import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { existsSync } from 'node:fs';

// In the sources this file is one level below package.json, compiled it is two levels below.
const file = ['../package.json', '../../package.json']
  .map((path) => new URL(path, import.meta.url))
  .find((url) => existsSync(url));

/** The version and the supported versions of Node in package.json. */
export const manifest = file
  ? (createRequire(import.meta.url)(fileURLToPath(file)) as { version: string; engines: { node: string } })
  : { version: '0.0.0', engines: { node: '^20.19.0' } };

export const VERSION: string = manifest.version;

/** Returns the file of a compiled program, such as `agent/proxy/main`. A bundle does not know where its modules were. */
export function programFile(name: string): string {
  return fileURLToPath(new URL(`dist/${name}.js`, file ?? import.meta.url));
}
