import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { existsSync } from 'node:fs';

// From sources this file stands one level below package.json, compiled it stands two.
const file = ['../package.json', '../../package.json']
  .map((path) => new URL(path, import.meta.url))
  .find((url) => existsSync(url));

/** What package.json says of this release. */
export const manifest = file
  ? (createRequire(import.meta.url)(fileURLToPath(file)) as { version: string; engines: { node: string } })
  : { version: '0.0.0', engines: { node: '^20.19.0' } };

export const VERSION: string = manifest.version;
