import { readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { changesIn, joinChanges, withRelease } from './changelog.js';
import { Checkout, ROOT } from './checkout.js';

// Prints the section of the next release. With its version: writes it into CHANGELOG.md, and removes the files that it is made of.
const [version] = process.argv.slice(2);
const folder = join(ROOT, 'changes');
const names = readdirSync(folder);
const section = joinChanges(new Map(names.map((name) => [name, readFileSync(join(folder, name), 'utf8')])));
if (version === undefined) {
  process.stdout.write(`${section}\n`);
} else {
  const checkout = new Checkout(ROOT);
  if (checkout.declared !== version)
    throw new Error(`package.json says ${checkout.declared}; first run: npm run set-version -- ${version}`);
  if (changesIn(names).length === 0) throw new Error('there is no change in the folder changes');
  const heading = `${version} (${new Date().toISOString().slice(0, 10)})`;
  writeFileSync(join(ROOT, 'CHANGELOG.md'), withRelease(checkout.read('CHANGELOG.md'), heading, section));
  for (const name of [...changesIn(names), 'summary.md']) rmSync(join(folder, name), { force: true });
}
