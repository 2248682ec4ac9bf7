import { existsSync, readFileSync } from 'node:fs';

// In the npm package `build.json` lies beside its package.json, in a checkout in `dist`. Sources have only their package.json.
const file = ['../../build.json', '../../../build.json', '../package.json']
  .map((path) => new URL(path, import.meta.url))
  .find((url) => existsSync(url));

/** What this build is; equal to that of the control plane which was built with it. */
export const VERSION: string = file ? (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version : '0.0.0';
