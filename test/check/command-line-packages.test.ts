import { readdirSync, readFileSync } from 'node:fs';
import { builtinModules } from 'node:module';
import { expect, it } from 'vitest';

const ROOT = new URL('../../', import.meta.url);
const read = (file: string) => readFileSync(new URL(file, ROOT), 'utf8');

interface Manifest {
  version: string;
  license: string;
  dependencies: Record<string, string>;
  /** Libraries that are in the package itself: all, or none. */
  bundleDependencies?: string[];
}
const manifest = (file: string) => JSON.parse(read(file)) as Manifest;
const project = manifest('package.json');

const WITH_TYPES = /^(?:import [^;]*? from|.*await import\()\s*'([^.'][^']*)'/gm;
const WITHOUT_TYPES = /^(?:import (?!type\b)[^;]*? from|.*await import\()\s*'([^.'][^']*)'/gm;

/** The packages that the programs below a folder import, its examples apart. */
function importedIn(folder: string, pattern: RegExp): Set<string> {
  const files = readdirSync(new URL(folder, ROOT), { recursive: true, encoding: 'utf8' }).filter(
    (file) => file.endsWith('.ts') && !file.startsWith('examples/') && !file.startsWith('api/examples/'),
  );
  const names = files.flatMap((file) => [...read(`${folder}${file}`).matchAll(pattern)].map(([, name = '']) => name));
  const packages = names.map((name) =>
    name
      .split('/')
      .slice(0, name.startsWith('@') ? 2 : 1)
      .join('/'),
  );
  return new Set(packages.filter((name) => !name.startsWith('node:') && !builtinModules.includes(name)));
}

it.each([
  // Its types are part of it.
  ['client/api/package.json', 'client/api/', WITH_TYPES],
  // It has the other parts of client within, without their types.
  ['client/cli/package.json', 'client/', WITHOUT_TYPES],
] as const)('%s names what its programs import, in the versions of this project', (file, folder, pattern) => {
  const { version, license, dependencies, bundleDependencies = Object.keys(dependencies) } = manifest(file);
  expect({ version, license }).toEqual({ version: project.version, license: project.license });
  expect(Object.keys(dependencies).sort()).toEqual([...importedIn(folder, pattern)].sort());
  expect(bundleDependencies).toEqual(Object.keys(dependencies));
  for (const [name, wanted] of Object.entries(dependencies))
    expect({ name, wanted }).toEqual({ name, wanted: project.dependencies[name] });
});
