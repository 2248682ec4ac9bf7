import { cpSync, existsSync, readFileSync } from 'node:fs';

// Copies packages of node_modules into a folder, with all that they need, as they are locked here.
// Usage: node dist/scripts/image/copy-libraries.js FOLDER PACKAGE...

/** It fetches binaries while packages are installed. */
const UNUSED = 'prebuild-install';

const [to = '', ...roots] = process.argv.slice(2);
const needed = new Set<string>();

function addAll(names: readonly string[], within?: string): void {
  for (const name of names) {
    // A library can have a version of its own within, which is copied with it.
    const own = `${within}/node_modules/${name}`;
    if (within !== undefined && existsSync(own)) addAll(dependenciesOf(own), own);
    else if (!needed.has(name) && name !== UNUSED) {
      needed.add(name);
      addAll(dependenciesOf(`node_modules/${name}`), `node_modules/${name}`);
    }
  }
}
function dependenciesOf(folder: string): string[] {
  const manifest = JSON.parse(readFileSync(`${folder}/package.json`, 'utf8')) as { dependencies?: object };
  return Object.keys(manifest.dependencies ?? {});
}

addAll(roots);
for (const name of needed) cpSync(`node_modules/${name}`, `${to}/${name}`, { recursive: true });
