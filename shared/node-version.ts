/** A symbol in SQLite drivers that abort Node 24 as soon as it collects a statement: nodejs/node#65446. */
const ABORTING = 'RemoveEnvironmentCleanupHook';

/**
 * Returns why a program cannot run on a version of Node such as `v20.19.0`; undefined: it can. `engines`: such as `^20.19.0 ||
 * ^22.12.0`.
 */
export function refusalOfNode(version: string, engines: string): string | undefined {
  const [major = 0, minor = 0] = numbersOf(version);
  const ranges = engines.split('||').map((range) => numbersOf(range));
  if (ranges.some(([itsMajor, itsMinor = 0]) => major === itsMajor && minor >= itsMinor)) return undefined;
  const known = ranges.map(([itsMajor, itsMinor]) => `${itsMajor} (from ${itsMajor}.${itsMinor})`);
  return `this is Node ${version.slice(1)}; install one of ${known.join(', ')}`;
}

/**
 * Returns why a compiled SQLite driver does not work with a version of Node; undefined: it does. `driver`: the bytes of its file.
 */
export function refusalOfDriver(version: string, driver: Buffer): string | undefined {
  const [major] = numbersOf(version);
  if (major !== 24 || !driver.includes(ABORTING)) return undefined;
  return 'better-sqlite3 was compiled with headers of Node 24.19 or later, with which it ends Node 24 at random (nodejs/node#65446): install a release, or run scripts/quickstart; both compile it with older headers';
}

function numbersOf(version: string): number[] {
  return version.trim().replace(/^[v^]/, '').split('.').map(Number);
}
