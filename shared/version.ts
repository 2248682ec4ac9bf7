import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { existsSync } from 'node:fs';

// From sources this file stands one level below package.json, compiled it stands two.
const manifest = ['../package.json', '../../package.json']
  .map((path) => new URL(path, import.meta.url))
  .find((url) => existsSync(url));

export const VERSION: string = manifest
  ? (createRequire(import.meta.url)(fileURLToPath(manifest)) as { version: string }).version
  : '0.0.0';
