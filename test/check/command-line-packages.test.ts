import { readdirSync, readFileSync } from 'node:fs';
import { builtinModules } from 'node:module';
import { expect, it } from 'vitest';

const ROOT = new URL('../../', import.meta.url);
const read = (file: string) => readFileSync(new URL(file, ROOT), 'utf8');

interface Manifest {
  version: string;
  license: string;
  dependencies: Record<string, string>;
}
const manifest = (file: string) => JSON.parse(read(file)) as Manifest;
const project = manifest('package.json');

/** The packages that the programs below a folder import, without those of which only types are used. */
function importedIn(folder: string): Set<string> {
  const files = readdirSync(new URL(folder, ROOT), { recursive: true, encoding: 'utf8' }).filter((file) =>
    file.endsWith('.ts'),
  );
  const names = files.flatMap((file) =>
    [...read(`${folder}${file}`).matchAll(/^(?:import (?!type\b)[^;]*? from|.*await import\()\s*'([^.'][^']*)'/gm)].map(
      ([, name = '']) => name,
    ),
  );
  const packages = names.map((name) =>
    name
      .split('/')
      .slice(0, name.startsWith('@') ? 2 : 1)
      .join('/'),
  );
  return new Set(packages.filter((name) => !name.startsWith('node:') && !builtinModules.includes(name)));
}

it.each([
  ['client/api/package.json', ['client/api/']],
  // It has the other parts of client within.
  ['client/cli/package.json', ['client/']],
])('%s names what its programs import, in the versions of this project', (file, folders) => {
  const { version, license, dependencies } = manifest(file);
  expect({ version, license }).toEqual({ version: project.version, license: project.license });
  const imported = folders.flatMap((folder) => [...importedIn(folder)]);
  expect(Object.keys(dependencies).sort()).toEqual([...new Set(imported)].sort());
  for (const [name, wanted] of Object.entries(dependencies))
    expect({ name, wanted }).toEqual({ name, wanted: project.dependencies[name] });
});
