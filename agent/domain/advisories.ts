/** A known vulnerability that lets a container escape, and the versions that fix it. */
export interface Advisory {
  id: string;
  /** The first fixed version of each release line that has a fix. */
  fixedIn: readonly string[];
  /** Package versions of distributions that have the fix although their number is lower. */
  packages: readonly string[];
}

export const ADVISORIES = {
  runc: [
    {
      id: 'CVE-2024-21626',
      fixedIn: ['1.1.12'],
      packages: ['1.1.5+ds1-1+deb12u1', '1.0.0~rc93+ds1-5+deb11u3'],
    },
    { id: 'CVE-2025-31133', fixedIn: ['1.2.8', '1.3.3'], packages: [] },
  ],
  docker: [{ id: 'CVE-2021-41091', fixedIn: ['20.10.9'], packages: [] }],
  'nvidia-container-toolkit': [
    { id: 'CVE-2024-0132', fixedIn: ['1.16.2'], packages: [] },
    { id: 'CVE-2025-23266', fixedIn: ['1.17.8'], packages: [] },
  ],
} as const satisfies Record<string, readonly Advisory[]>;

export type Program = keyof typeof ADVISORIES;

/** The version of a program, and that of its package if a distribution built it. */
export interface Installed {
  version: string;
  packaged: string | null;
}

/**
 * Returns the advisories that apply to an installed version. `unsure`: the number is too low, but the distribution can have fixed it in
 * a package version that is not listed here.
 */
export function concerning(program: Program, { version, packaged }: Installed): { id: string; unsure: boolean }[] {
  const all: readonly Advisory[] = ADVISORIES[program];
  return all
    .filter(
      ({ fixedIn, packages }) => !isFixed(version, fixedIn) && !packages.some((fixed) => isAtLeast(packaged, fixed)),
    )
    .map(({ id }) => ({ id, unsure: packaged !== null && /deb\d|ubuntu|~|\+ds/.test(packaged) }));
}

function isFixed(version: string, fixedIn: readonly string[]): boolean {
  const own = numbersOf(version);
  const [major, minor] = own;
  const ofLine = fixedIn.map(numbersOf).find((fixed) => fixed[0] === major && fixed[1] === minor);
  if (ofLine) return compare(own, ofLine) >= 0;
  // A later release line has the fix from its first version.
  return fixedIn.every((fixed) => compare(own, numbersOf(fixed)) > 0);
}

/** Tells whether a package has the same program version as `fixed`, and its revision or a later one. */
function isAtLeast(packaged: string | null, fixed: string): boolean {
  if (packaged === null) return false;
  const [upstream, revision = ''] = packaged.split(/-(?=[^-]*$)/);
  const [fixedUpstream, fixedRevision = ''] = fixed.split(/-(?=[^-]*$)/);
  return upstream === fixedUpstream && compare(numbersOf(revision), numbersOf(fixedRevision)) >= 0;
}

function numbersOf(text: string): number[] {
  return (text.match(/\d+/g) ?? []).map(Number);
}

function compare(one: readonly number[], other: readonly number[]): number {
  for (let index = 0; index < Math.max(one.length, other.length); index++) {
    const difference = (one[index] ?? 0) - (other[index] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}
