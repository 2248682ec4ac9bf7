import { readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { keyOf, readSource } from './read-source.js';
import { isRecorded } from './recording.js';
import type { TestRecord } from './record.js';
import type { MappedSource, TestMap } from './test-map.js';

type Head = Pick<TestMap, 'commit' | 'uncommitted' | 'unrecorded'>;

/** Makes the map of what test files ran and read. `files` are those of the working tree. */
export function buildMap(
  head: Head,
  records: readonly TestRecord[],
  files: readonly string[],
  textOf = (file: string) => readFileSync(file, 'utf8'),
): TestMap {
  const sets = new Sets();
  const ran = new Collected();
  const loaded = new Collected();
  const touched = new Collected();
  const loading = new Map<string, Set<string>>();
  for (const [test, record] of records.entries()) {
    for (const file of record.loaded) loaded.add(file, test);
    for (const path of record.touched) touched.add(path, test);
    for (const id of partsIn(record.ran)) ran.add(id, test);
    for (const [file, during] of Object.entries(record.loading))
      for (const id of partsIn(during)) loading.set(id, (loading.get(id) ?? new Set()).add(keyOf(file)));
  }
  const map = (file: string): MappedSource => {
    const { source } = readSource(file, textOf(file));
    const ids = source.parts.map((_part, index) => `${file} ${index}`);
    const loaders = ids.map((id, part): [number, string[]] => [part, [...(loading.get(id) ?? [])]]);
    return {
      ...source,
      file,
      isRecorded: isRecorded(file),
      ranBy: ids.map((id) => sets.idOf(ran.of(id))),
      loadedBy: sets.idOf(loaded.of(file)),
      ranWhileLoading: Object.fromEntries(loaders.filter(([, by]) => by.length > 0)),
    };
  };
  const sources = files.filter(isSource).map((file) => [keyOf(file), map(file)]);
  const inTree = new Set(files.flatMap((file) => [file, ...foldersOf(file)]));
  const touchedPaths = touched.keys().filter((path) => inTree.has(path) || path.startsWith('dist/'));
  return {
    ...head,
    tests: records.map(({ test }) => test),
    sources: Object.fromEntries(sources) as TestMap['sources'],
    touched: Object.fromEntries(touchedPaths.map((path) => [path, sets.idOf(touched.of(path))])),
    sets: sets.all,
  };
}

/** Whether a file is TypeScript that is read for the map. */
export function isSource(file: string): boolean {
  return isRecorded(file) || (/^test\/.*\.ts$/.test(file) && !/^test\/fixtures\/|\.d\.ts$/.test(file));
}

/** A folder, and those that it is in. */
export function foldersOf(file: string): string[] {
  const folder = dirname(file);
  return folder === '.' ? [''] : [folder, ...foldersOf(folder)];
}

function partsIn(ran: TestRecord['ran']): string[] {
  return Object.entries(ran).flatMap(([file, parts]) => parts.map((part) => `${file} ${part}`));
}

/** Lists of tests by a name. */
class Collected {
  private readonly lists = new Map<string, number[]>();

  add(name: string, test: number): void {
    const list = this.lists.get(name);
    if (list) list.push(test);
    else this.lists.set(name, [test]);
  }

  of(name: string): readonly number[] {
    return this.lists.get(name) ?? [];
  }

  keys(): string[] {
    return [...this.lists.keys()];
  }
}

/** Each set of tests once. */
class Sets {
  readonly all: number[][] = [];
  private readonly known = new Map<string, number>();

  idOf(tests: readonly number[]): number {
    const name = tests.join();
    const id = this.known.get(name) ?? this.all.push([...tests]) - 1;
    this.known.set(name, id);
    return id;
  }
}
