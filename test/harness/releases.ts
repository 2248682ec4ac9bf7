import { readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import semver from 'semver';

const FIXTURES = fileURLToPath(new URL('../fixtures/', import.meta.url));

/** Returns the file that a release has left behind: `npm run freeze-release` writes them. */
export function leftBy(release: string, file: 'journal.db' | 'openapi.json' | 'store.db' | 'world.json'): string {
  return `${FIXTURES}release-${release}/${file}`;
}

/** The versions of all releases, such as `0.1.0`, the oldest first. */
export const RELEASES: readonly string[] = readdirSync(FIXTURES)
  .flatMap((name) => (name.startsWith('release-') ? [name.slice('release-'.length)] : []))
  .sort(semver.compare);
