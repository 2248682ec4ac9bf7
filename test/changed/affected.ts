import type { Source } from './source.js';
import type { MappedSource, TestMap } from './test-map.js';

interface Use {
  by: string;
  /** The name that the user gives it; otherwise it exports it again as `exported`. */
  local?: string;
  exported?: string;
}

/** Finds the tests that a change of one source can break. One instance for each change. */
export class Affected {
  readonly tests = new Set<number>();
  /** The changed parts. */
  readonly changed: string[] = [];
  private readonly seen = new Set<string>();

  constructor(
    private readonly map: TestMap,
    private readonly uses = usesIn(map),
  ) {}

  /** Adds what a change of a source to `after` can break; without `after` the file has been removed. */
  add(key: string, after: Source | undefined): void {
    const before = this.map.sources[key];
    if (!before) return;
    if (!after || hasOtherEffects(before, after)) return this.addWhole(key, 'what it does when it is loaded');
    for (const part of missingIn(after, before)) {
      this.changed.push(before.parts[part]?.path ?? '');
      this.addPart(key, part);
    }
    for (const [name, imported] of Object.entries(before.imports)) {
      const now = after.imports[name];
      if (now && (now.from !== imported.from || now.name !== imported.name)) this.addName(key, name);
    }
    for (const [name, local] of Object.entries(before.exports))
      if (JSON.stringify(after.exports[name]) !== JSON.stringify(local)) this.addExport(key, name);
  }

  private addWhole(key: string, why: string): void {
    const source = this.map.sources[key];
    if (!source || this.hasSeen(key, 'whole')) return;
    if (why !== '') this.changed.push(why);
    this.addSet(source.loadedBy);
    for (const part of source.parts.keys()) this.addPart(key, part);
  }

  private addPart(key: string, index: number): void {
    const source = this.map.sources[key];
    const part = source?.parts[index];
    if (!part || this.hasSeen(key, `part ${index}`)) return;
    this.addSet(source.ranBy[index]);
    const test = this.map.tests.indexOf(source.file);
    if (test !== -1) this.tests.add(test);
    for (const loading of source.ranWhileLoading[index] ?? []) this.addMade(loading);
    if (part.kind === 'statement') this.addWhole(key, '');
    if (part.kind !== 'value') return;
    for (const name of part.declares) this.addName(key, name);
    // The methods of a class, and functions that the value holds.
    for (const [inner, { path }] of source.parts.entries())
      if (path.startsWith(`${part.path}/`)) this.addPart(key, inner);
  }

  /** Adds everything that is made when the file is loaded. */
  private addMade(key: string): void {
    const source = this.map.sources[key];
    if (!source || this.hasSeen(key, 'made')) return;
    for (const [index, { kind }] of source.parts.entries()) if (kind !== 'function') this.addPart(key, index);
  }

  /** Adds what uses a name of the file's top level. */
  private addName(key: string, name: string): void {
    const source = this.map.sources[key];
    if (!source || this.hasSeen(key, `name ${name}`)) return;
    for (const [index, { uses }] of source.parts.entries()) if (uses.includes(name)) this.addPart(key, index);
    for (const [exported, local] of Object.entries(source.exports)) if (local === name) this.addExport(key, exported);
  }

  /** Adds what uses an export of the file. */
  private addExport(key: string, name: string): void {
    if (this.hasSeen(key, `export ${name}`)) return;
    for (const as of [name, '*']) {
      for (const { by, local, exported } of this.uses.get(`${key} ${as}`) ?? []) {
        if (local !== undefined) this.addName(by, local);
        else this.addExport(by, exported ?? name);
      }
    }
  }

  private addSet(set: number | undefined): void {
    for (const test of this.map.sets[set ?? -1] ?? []) this.tests.add(test);
  }

  private hasSeen(key: string, what: string): boolean {
    const id = `${key} ${what}`;
    if (this.seen.has(id)) return true;
    this.seen.add(id);
    return false;
  }
}

/** Who uses which export: by the file and the name, `*` for all of the file's names. */
export function usesIn({ sources }: TestMap): ReadonlyMap<string, Use[]> {
  const uses = new Map<string, Use[]>();
  const add = (of: string, use: Use) => {
    const known = uses.get(of) ?? [];
    uses.set(of, known);
    known.push(use);
  };
  for (const [by, { imports, exports, passesOn }] of Object.entries(sources)) {
    for (const [local, { from, name }] of Object.entries(imports)) add(`${from} ${name}`, { by, local });
    for (const [exported, it] of Object.entries(exports))
      if (typeof it !== 'string') add(`${it.from} ${it.name}`, { by, exported });
    for (const from of passesOn) add(`${from} *`, { by });
  }
  return uses;
}

/** Whether the file does something else when it is loaded, apart from the values that it makes. */
function hasOtherEffects(before: Source, after: Source): boolean {
  const of = ({ parts, effects, passesOn }: Source) =>
    [...effects, ...passesOn, ...parts.filter(({ kind }) => kind === 'statement').map(({ hash }) => hash)].join();
  return of(before) !== of(after);
}

/** The parts of a source that another one does not have, or not alike. */
function missingIn(after: Source, before: MappedSource): number[] {
  const there = new Set(after.parts.map(idOf));
  return [...before.parts.keys()].filter((index) => {
    const part = before.parts[index];
    return part && !there.has(idOf(part));
  });
}

function idOf({ path, kind, hash }: Source['parts'][number]): string {
  return `${kind} ${path} ${hash}`;
}
