/** A package in a release. `places`: folders or files of the tarball that have something of it. */
export interface Package {
  kind: 'npm' | 'deb';
  name: string;
  version: string;
  license: string | null;
  places: string[];
  /** Debian's architecture. */
  architecture?: string;
  /** As npm's lock has it, such as `sha512-...`, or the same with `sha256-`. */
  integrity?: string;
}

interface Locked {
  version: string;
  license?: string;
  integrity?: string;
}

/** Lists the packages that npm has installed into a release, from its `node_modules/.package-lock.json`. */
export function installedPackages(lock: string): Package[] {
  const { packages } = JSON.parse(lock) as { packages: Record<string, Locked> };
  return Object.entries(packages).map(([place, { version, license = null, integrity }]) => ({
    kind: 'npm',
    name: place.slice(place.lastIndexOf('node_modules/') + 'node_modules/'.length),
    version,
    license,
    places: [place],
    ...(integrity === undefined ? {} : { integrity }),
  }));
}

/** Lists the packages of which the console has code, from the licenses that its build writes. */
export function consolePackages(licenses: string): Package[] {
  return [...licenses.matchAll(/^## (\S+) - (\S+)(?: \((.+)\))?$/gm)].map(
    ([, name = '', version = '', license = null]) => ({
      kind: 'npm',
      name,
      version,
      license,
      places: ['dist/console'],
    }),
  );
}

/** Lists the packages of Debian of which the guest tools have files: each line is `FILE PACKAGE VERSION ARCHITECTURE`. */
export function guestPackages(list: string): Package[] {
  const packages = new Map<string, Package>();
  for (const line of list.trim().split('\n')) {
    const [file, name = '', version = '', architecture = ''] = line.split(' ');
    const known = packages.get(name) ?? { kind: 'deb', name, version, license: null, architecture, places: [] };
    known.places.push(`guest-tools/${file}`);
    packages.set(name, known);
  }
  return [...packages.values()];
}

/** Returns the package of the Node that a release brings, from a line `NAME@VERSION SHA256`: the digest in hex, of the npm package. */
export function nodePackage(line: string): Package {
  const [, name = '', version = '', digest = ''] = /^(\S+)@(\S+) ([0-9a-f]{64})$/.exec(line.trim()) ?? [];
  const integrity = `sha256-${Buffer.from(digest, 'hex').toString('base64')}`;
  // It holds OpenSSL, V8, ICU and others, which its license file names.
  return { kind: 'npm', name, version, license: null, places: ['node/bin/node', 'LICENSES/node.txt'], integrity };
}

/** Returns the package URL, as CycloneDX identifies packages. */
export function packageUrl({ kind, name, version, architecture }: Package): string {
  const encoded = encodeURIComponent(version);
  return kind === 'npm'
    ? `pkg:npm/${name.replace('@', '%40')}@${encoded}`
    : `pkg:deb/debian/${name.replaceAll('+', '%2B')}@${encoded}?arch=${architecture}`;
}

/**
 * Returns the bill of materials of a release, in the form of CycloneDX 1.6: `version` is the build's, `timestamp` that of its commit, so
 * that the same sources give the same bytes. The same package at several places is one component.
 */
export function billOfMaterials(version: string, timestamp: string, packages: readonly Package[]): object {
  const merged = new Map<string, Package>();
  for (const each of packages) {
    const url = packageUrl(each);
    const known = merged.get(url);
    merged.set(url, known === undefined ? each : { ...each, ...known, places: [...known.places, ...each.places] });
  }
  const components = [...merged]
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([url, each]) => component(url, each));
  return {
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    version: 1,
    metadata: {
      timestamp,
      component: {
        type: 'application',
        'bom-ref': 'gpurent',
        name: 'gpurent',
        version,
        licenses: [{ license: { id: 'Apache-2.0' } }],
      },
    },
    components,
    dependencies: [{ ref: 'gpurent', dependsOn: components.map((each) => each['bom-ref']) }],
  };
}

function component(url: string, { name, version, license, places, integrity }: Package) {
  const [algorithm, digest] = integrity?.split('-') ?? [];
  return {
    type: 'library',
    'bom-ref': url,
    name,
    version,
    ...(digest !== undefined && (algorithm === 'sha512' || algorithm === 'sha256')
      ? { hashes: [{ alg: algorithm.replace('sha', 'SHA-'), content: Buffer.from(digest, 'base64').toString('hex') }] }
      : {}),
    ...(license === null ? {} : { licenses: [{ expression: license }] }),
    purl: url,
    evidence: { occurrences: [...new Set(places)].sort().map((location) => ({ location })) },
  };
}
