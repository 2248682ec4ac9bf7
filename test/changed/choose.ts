import { Affected, usesIn } from './affected.js';
import { foldersOf } from './build-map.js';
import { closureOf, sourceOfProgram } from './closure.js';
import { keyOf } from './read-source.js';
import type { Source } from './source.js';
import type { TestMap } from './test-map.js';

/** What every test depends on. */
const OF_ALL = [/^package-lock\.json$/, /^vitest\.config\.js$/, /^tsconfig/, /^proto\//];
/** Read by shells, too, which tells the map nothing. */
const OF_CHECKS = [/^scripts\/[^.]*(\.sh)?$/, /^packaging\//, /^templates\//];
const CHECKS = 'test/check/';
const QUICK = /^test\/(unit|api|contract|property|simulation|wire|agent|check)\//;

export interface Change {
  file: string;
  /** What a source is now; undefined where it is gone, or is no source. */
  source?: Source;
  isGone: boolean;
}

/** What one changed file can break. */
export interface Choice {
  file: string;
  /** The changed parts of the file, or why it breaks what it does. */
  why: string;
  tests: string[];
  /** Tests that only run a program of `dist` that is made from the file. */
  byProgram: string[];
}

/** Says for each change which test files it can break. */
export function choose(map: TestMap, changes: readonly Change[]): Choice[] {
  const uses = usesIn(map);
  const programs = programsIn(map);
  return changes.map((change) => {
    const { file } = change;
    const [why, tests] = brokenBy(map, change, uses);
    for (const test of readersOf(map, change)) tests.add(test);
    const key = keyOf(file);
    const byProgram = programs.flatMap(({ sources, tests: ran }) => (sources.has(key) ? ran : []));
    const known = [...tests].sort();
    return { file, why, tests: known, byProgram: [...new Set(byProgram)].filter((test) => !tests.has(test)).sort() };
  });
}

function brokenBy(map: TestMap, change: Change, uses: ReturnType<typeof usesIn>): [why: string, Set<string>] {
  const { file, source, isGone } = change;
  const all = [...map.tests, ...map.unrecorded];
  if (isTest(file)) {
    const isQuick = map.sources[keyOf(file)] ? all.includes(file) : QUICK.test(file);
    return isQuick ? ['', new Set(isGone ? [] : [file])] : ['no quick test', new Set()];
  }
  if (OF_ALL.some((pattern) => pattern.test(file))) return ['every test depends on it', new Set(all)];
  const key = keyOf(file);
  const known = map.sources[key];
  if (known && !known.isRecorded) {
    const importers = all.filter((test) => closureOf(map, keyOf(test)).has(key));
    return ['its importers', new Set(importers)];
  }
  if (known?.file === file) {
    const affected = new Affected(map, uses);
    affected.add(key, source);
    return [affected.changed.join(', '), new Set([...affected.tests].map((test) => map.tests[test] ?? ''))];
  }
  if (source) return ['new', new Set()];
  const isKnown = Object.hasOwn(map.touched, file) && !OF_CHECKS.some((pattern) => pattern.test(file));
  return !isKnown ? ['the checks', new Set(all.filter((test) => test.startsWith(CHECKS)))] : ['', new Set()];
}

/** The tests that read the file, or the folder from which it is gone or into which it came. */
function readersOf({ tests, sets, touched, sources }: TestMap, { file, isGone }: Change): string[] {
  const isNew = !Object.hasOwn(touched, file) && sources[keyOf(file)]?.file !== file;
  const paths = isNew || isGone ? [file, foldersOf(file)[0] ?? ''] : [file];
  return paths.flatMap((path) => sets[touched[path] ?? -1] ?? []).map((test) => tests[test] ?? '');
}

function programsIn(map: TestMap): { sources: ReadonlySet<string>; tests: string[] }[] {
  return Object.entries(map.touched).flatMap(([path, set]) => {
    const source = sourceOfProgram(path);
    if (source === undefined || !map.sources[source]) return [];
    return { sources: closureOf(map, source), tests: (map.sets[set] ?? []).map((test) => map.tests[test] ?? '') };
  });
}

export function isTest(file: string): boolean {
  return /^test\/.*\.test\.ts$/.test(file);
}
