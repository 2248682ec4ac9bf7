import { basename } from 'node:path';
import semver from 'semver';
import { SetupError } from '../coded-error.js';

/** Longer than any version of a build. */
const LONGEST_VERSION = 64;
const BEFORE = 'gpurent-';
/** Hosts are of no other kind. */
const AFTER = '-linux-x64.tar.gz';

/** Tells whether a text is a version of SemVer as builds write it: no `v`, no space, nothing left out. */
export function isVersion(text: string): boolean {
  if (text.length > LONGEST_VERSION) return false;
  const parsed = semver.parse(text);
  return (
    parsed !== null && [parsed.version, ...(parsed.build.length > 0 ? [parsed.build.join('.')] : [])].join('+') === text
  );
}

/** Tells whether a version is strictly higher than another one. What follows `+` does not count, and no other text is higher. */
export function isNewer(version: string, than: string): boolean {
  return isVersion(version) && isVersion(than) && semver.gt(version, than);
}

/** Returns the name of the tarball of a release for hosts. */
export function tarballOf(version: string): string {
  return `${BEFORE}${version}${AFTER}`;
}

/** Returns the version in the name of a tarball for hosts; undefined: the name is another one. */
export function versionOfTarball(name: string): string | undefined {
  const version = name.slice(BEFORE.length, -AFTER.length);
  return isVersion(version) && tarballOf(version) === name ? version : undefined;
}

/** Throws SetupError unless a file has the name of the tarball of a release that is higher than `than`. */
export function requireNewer(file: string, than: string): void {
  if (!isVersion(than)) throw new SetupError(`${than} is no version`);
  const name = basename(file);
  const version = versionOfTarball(name);
  if (version === undefined) throw new SetupError(`${name} is not the name of a release for hosts`);
  if (!isNewer(version, than)) throw new SetupError(`version ${version} is not higher than ${than}`);
}
