import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { MINUTES } from '../../scripts/suite/budget.js';

const root = fileURLToPath(new URL('../../', import.meta.url));
const read = (path: string) => readFileSync(join(root, path), 'utf8');

it.each([
  [
    'README.md',
    /`test` takes (\d+) minutes on two slow cores, and (\d+) once it has kept what it makes/,
    ['nothing', 'changed'],
  ],
  ['README.md', /`test --quick` leaves out [^.]* and takes (\d+)\./, ['quick']],
  ['CONTRIBUTING.md', /^npm test .*: (\d+) minutes$/m, ['unit']],
  ['CONTRIBUTING.md', /^\.\/scripts\/test --quick .*: (\d+) minutes$/m, ['quick']],
  ['CONTRIBUTING.md', /^\.\/scripts\/test {2,}.*: (\d+) minutes, (\d+) on a new machine$/m, ['changed', 'nothing']],
  ['docs/dev/testing.md', /^\| `npm test` \| (\d+) min \|/m, ['unit']],
  ['docs/dev/testing.md', /^\| `\.\/scripts\/test --quick`[^|]* \| (\d+) min \|/m, ['quick']],
  ['docs/dev/testing.md', /^\| `\.\/scripts\/test`, nothing kept \| (\d+) min \|/m, ['nothing']],
  ['docs/dev/testing.md', /^\| `\.\/scripts\/test`, artifacts kept \| (\d+) min \|/m, ['kept']],
  [
    'docs/dev/testing.md',
    /^\| `\.\/scripts\/test`, artifacts and results kept, one line changed \| (\d+) min \|/m,
    ['changed'],
  ],
] as const)('%s names the budget of the scripts: %s', (path, place, names) => {
  const [, ...told] = place.exec(read(path)) ?? [];
  expect(told.map(Number)).toEqual(names.map((name) => MINUTES[name]));
});

it('.ci/run is the command of the README', () => {
  expect(read('.ci/run')).toContain('/../scripts/test"');
  expect(read('README.md')).toMatch(/^\.\/scripts\/test {2,}# run all tests$/m);
});
