import { execFileSync } from 'node:child_process';
import { readFileSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Commit, type Release, lastRelease } from './build-version.js';

/** The folder of the checkout, seen from `dist/scripts/releases`. */
export const ROOT = fileURLToPath(new URL('../../../', import.meta.url));

/** The files whose version is that of package.json. */
export const MANIFESTS = [
  'package.json',
  'package-lock.json',
  'client/api/package.json',
  'client/cli/package.json',
] as const;

/** A checkout of the sources, with git or without. */
export class Checkout {
  constructor(readonly folder: string) {}

  read(file: string): string {
    return readFileSync(join(this.folder, file), 'utf8');
  }

  versionIn(manifest: (typeof MANIFESTS)[number]): string {
    return (JSON.parse(this.read(manifest)) as { version: string }).version;
  }

  get declared(): string {
    return this.versionIn('package.json');
  }

  get release(): Release | null {
    return lastRelease(this.read('CHANGELOG.md'));
  }

  /** Returns the present commit; null where these files are not the root of a repository, as in a tarball of the sources. */
  commit(): Commit | null {
    const top = this.git('rev-parse', '--show-toplevel');
    if (top === null || realpathSync(top) !== realpathSync(this.folder)) return null;
    const id = this.git('rev-parse', '--short=8', 'HEAD');
    if (id === null) return null;
    const isModified = this.git('status', '--porcelain', '--untracked-files=no') !== '';
    return { id, since: this.commitsSinceRelease(), isModified };
  }

  /** Counts from the commit that put the newest release into the changelog. A changelog that is changed right now starts anew. */
  private commitsSinceRelease(): number | null {
    if (this.git('rev-parse', '--is-shallow-repository') !== 'false') return null;
    const release = this.release;
    if (release === null) return Number(this.git('rev-list', '--count', 'HEAD'));
    const mark = this.git('log', '-1', '--format=%H', `-S## ${release.version}`, '--', 'CHANGELOG.md');
    return mark === null || mark === '' ? 0 : Number(this.git('rev-list', '--count', `${mark}..HEAD`));
  }

  /** Returns what git prints; null if it fails. */
  private git(...args: string[]): string | null {
    try {
      return execFileSync('git', args, {
        cwd: this.folder,
        encoding: 'utf8',
        stdio: ['ignore', 'pipe', 'ignore'],
      }).trim();
    } catch {
      return null;
    }
  }
}
