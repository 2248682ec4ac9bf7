import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { refusalOfDriver, refusalOfNode } from './node-version.js';
import { manifest } from './version.js';

/**
 * Ends the program with one line if it cannot run with this Node or with the compiled SQLite driver. Must be imported before
 * everything else.
 */
const refusal = refusalOfNode(process.version, manifest.engines.node) ?? lookAtDriver();
if (refusal !== undefined) {
  process.stderr.write(`gpurent: ${refusal}\n`);
  // Without an exit the other imports would still run.
  // oxlint-disable-next-line no-restricted-properties
  process.exit(1);
}

function lookAtDriver(): string | undefined {
  const require = createRequire(import.meta.url);
  try {
    (require('better-sqlite3') as (file: string) => { close(): void })(':memory:').close();
  } catch (error) {
    const reason = (error as Error).message.replace(/\s+/g, ' ').replace(/\.? Please try .*/, '');
    return `better-sqlite3 was not compiled for Node ${process.versions.node} on ${process.arch} (${reason}): install a release for this Node, or run scripts/quickstart in the sources`;
  }
  const file = Object.keys(require.cache).find((path) => path.endsWith('better_sqlite3.node'));
  return file === undefined ? undefined : refusalOfDriver(process.version, readFileSync(file));
}
