import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

/** What is gpurent's own in a tarball, or a copy of what the list names elsewhere. */
const OWN =
  /^(dist|docs|packaging|templates|scripts|agent|clients|LICENSES)\/|^(package(-lock)?\.json|README\.md|SECURITY\.md|LICENSE|sbom\.json)$/;
const OWN_TOOLS = new Set(['guest-tools/init', 'guest-tools/bin/sh', 'node_modules/.package-lock.json']);

interface Component {
  name: string;
  version: string;
  evidence: { occurrences: { location: string }[] };
}

/** Usage: check-sbom SBOM TARBALL. Fails if a file of the tarball belongs to no component, or a component has no file there. */
const [bill = '', tarball = ''] = process.argv.slice(2);
const { metadata, components } = JSON.parse(readFileSync(bill, 'utf8')) as {
  metadata: { component: Component };
  components: Component[];
};
const files = execFileSync('tar', ['-tzf', tarball], { encoding: 'utf8', maxBuffer: 1 << 28 })
  .split('\n')
  .filter((line) => line !== '' && !line.endsWith('/'))
  .map((line) => line.slice(line.indexOf('/') + 1));
const places = components.flatMap(({ evidence }) => evidence.occurrences.map(({ location }) => location));
const isIn = (file: string, place: string) => file === place || file.startsWith(`${place}/`);
const listed = new Set(places);
const isListed = (file: string) => file.split('/').some((_, at, parts) => listed.has(parts.slice(0, at + 1).join('/')));
const faults = [
  ...files
    .filter((file) => !OWN.test(file) && !OWN_TOOLS.has(file) && !isListed(file))
    .map((file) => `${file} is in no component`),
  ...places
    .filter((place) => !files.some((file) => isIn(file, place)))
    .map((place) => `${place} is not in the tarball`),
  ...['better-sqlite3', 'react', 'dropbear-bin', 'busybox-static', 'rsync', 'openssh-sftp-server', 'libssl3'].flatMap(
    (name) => (components.some((each) => each.name === name) ? [] : [`${name} is missing`]),
  ),
  ...(components.some(({ name }) => name === 'vitest') ? ['vitest is no part of a release'] : []),
];
if (!tarball.includes(`gpurent-${metadata.component.version}-`))
  faults.push(`the list is of ${metadata.component.version}`);
if (faults.length > 0)
  throw new Error(`the list of packages does not match the release:\n${faults.slice(0, 20).join('\n')}`);
process.stdout.write(`${files.length} files, ${components.length} components\n`);
