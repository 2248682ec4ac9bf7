import semver from 'semver';

/** The commit that is built. `since`: how many commits came after the last release; null where the history is not there. */
export interface Commit {
  id: string;
  since: number | null;
  isModified: boolean;
}

/** The newest release in CHANGELOG.md; null: none. */
export interface Release {
  version: string;
  date: string | null;
}

/**
 * Returns what a build is called, in the form of SemVer. `declared`: the version in package.json. `commit`: null without git. Only the
 * unchanged commit of a release, or sources without git, get the plain version of a release.
 */
export function buildVersion(declared: string, commit: Commit | null): string {
  const isRelease = semver.prerelease(declared) === null;
  if (commit === null) return isRelease ? declared : `${declared}+unknown`;
  if (isRelease && commit.since === 0 && !commit.isModified) return declared;
  const count = isRelease || commit.since === null ? '' : `.${commit.since}`;
  return `${declared}${count}+${commit.id}${commit.isModified ? '.modified' : ''}`;
}

/** Returns a version without what SemVer ignores in comparisons, as npm demands it: `0.3.0-dev.12+625c9e7c` is `0.3.0-dev.12`. */
export function npmVersion(version: string): string {
  return semver.parse(version, {}, true).version;
}

/** Returns the newest release of a changelog: `## 0.3.0 (2026-12-01)`, or without a date, as earlier ones have it. */
export function lastRelease(changelog: string): Release | null {
  const [, version, date = null] = /^## (\d+\.\d+\.\d+)(?: \((\d{4}-\d\d-\d\d)\))?$/m.exec(changelog) ?? [];
  return version === undefined ? null : { version, date };
}

/**
 * Returns what is wrong with the version of a checkout; undefined: nothing. A commit may call itself a release only if it dates that
 * release in the changelog: every later one is `-dev`. `commit`: its `since` counts from the commit that dated `release`.
 */
export function versionFault(declared: string, release: Release | null, commit: Commit | null): string | undefined {
  if (semver.valid(declared) !== declared) return `the version ${declared} in package.json is not one of SemVer`;
  const raise = `raise it with: npm run set-version -- ${semver.inc(declared, 'minor')}-dev`;
  if (semver.prerelease(declared) !== null)
    return release !== null && semver.lte(declared, release.version)
      ? `package.json says ${declared}, and ${release.version} is released; ${raise}`
      : undefined;
  if (release?.version !== declared || release.date === null)
    return `package.json says ${declared}, and CHANGELOG.md has no section "## ${declared} (date)"; run: npm run changelog -- ${declared}`;
  if (commit === null || commit.since === 0 || commit.since === null) return undefined;
  return `package.json says ${declared}, which was released ${commit.since} commits ago; ${raise}`;
}
