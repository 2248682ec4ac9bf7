import { copyFileSync, existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { billOfMaterials, consolePackages, guestPackages, installedPackages, nodePackage } from './sbom.js';

// Usage: write-sbom STAGE GUEST-PACKAGES NODE SECONDS: writes sbom.json and LICENSES/npm into the folder of a release that is complete
// otherwise. NODE is what `nodePackage` reads.
const [stage = '', guestList = '', node = '', seconds = ''] = process.argv.slice(2);
const read = (file: string) => readFileSync(join(stage, file), 'utf8');
const { version } = JSON.parse(read('dist/build.json')) as { version: string };
const installed = installedPackages(read('node_modules/.package-lock.json'));
const packages = [
  ...installed,
  ...consolePackages(read('dist/console/licenses.md')),
  ...guestPackages(readFileSync(guestList, 'utf8')),
  nodePackage(node),
];
const timestamp = new Date(Number(seconds) * 1_000).toISOString();
writeFileSync(join(stage, 'sbom.json'), `${JSON.stringify(billOfMaterials(version, timestamp, packages), null, 2)}\n`);

const folder = join(stage, 'LICENSES/npm');
mkdirSync(folder, { recursive: true });
// The console's are together in one file, which its build has made.
copyFileSync(join(stage, 'dist/console/licenses.md'), join(folder, 'console.md'));
for (const { name, version: its, license, places } of installed) {
  const [place = ''] = places;
  const texts = readdirSync(join(stage, place))
    .filter((file) => /^(licen[cs]e|copying|notice)/i.test(file) && !/\.(js|json|ts)$/.test(file))
    .sort();
  const stated = `${name} ${its}: ${license ?? 'no license is stated'}\n`;
  const contents = texts.map((file) => read(join(place, file)));
  writeFileSync(join(folder, `${name.replace('/', '+')}@${its}.txt`), [stated, ...contents].join('\n'));
}
if (!existsSync(join(stage, 'LICENSES/debian'))) throw new Error('the licenses of the guest tools are missing');
