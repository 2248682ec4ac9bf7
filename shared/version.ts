import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { existsSync } from 'node:fs';

const read = createRequire(import.meta.url);
const firstOf = (...paths: string[]) =>
  paths.map((path) => new URL(path, import.meta.url)).find((url) => existsSync(url));

// In the sources this file is one level below package.json, compiled it is two levels below.
const file = firstOf('../package.json', '../../package.json');
// The build writes it into `dist`. Sources have none, so that no test depends on the commit.
const build = firstOf('../build.json');

/** The version and the supported versions of Node in package.json. */
export const manifest = file
  ? (read(fileURLToPath(file)) as { version: string; engines: { node: string } })
  : { version: '0.0.0', engines: { node: '^20.19.0' } };

/** What this build is, such as `0.3.0`, or `0.3.0-dev.12+625c9e7c` between releases. */
export const VERSION: string = build ? (read(fileURLToPath(build)) as { version: string }).version : manifest.version;

/** Returns the file of a compiled program, such as `agent/proxy/main`. A bundle does not know where its modules were. */
export function programFile(name: string): string {
  return fileURLToPath(new URL(`dist/${name}.js`, file ?? import.meta.url));
}
