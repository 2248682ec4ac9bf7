import { runInNewContext } from 'node:vm';
import { describe, expect, it } from 'vitest';
import { buildMap } from '../changed/build-map.js';
import { choose, type Change } from '../changed/choose.js';
import { readSource } from '../changed/read-source.js';
import { RECORDER, Recorder } from '../changed/recorder.js';
import { withRecording } from '../changed/recording.js';
import type { TestMap } from '../changed/test-map.js';

const PRICES = `
import { round } from './round.js';
export const HOUR = 3_600;
const DAY = 24 * HOUR;
export function perHour(price: number): number {
  return round(price * HOUR);
}
export function perDay(price: number): number {
  return [price].map((one) => one * DAY)[0]!;
}
export class Bill {
  private readonly most = DAY;
  sum(): number {
    return this.most;
  }
}
`;
const FILES = {
  'shared/prices.ts': PRICES,
  'shared/round.ts': 'export function round(of: number): number {\n  return Math.round(of);\n}\n',
  'shared/table.ts':
    "import { perDay } from './prices.js';\nexport const TABLE = [perDay(1)];\nexport function first() {\n  return TABLE[0];\n}\n",
  'shared/effect.ts':
    "import { HOUR } from './prices.js';\nprocess.title = String(HOUR);\nexport function untouched() {}\n",
  'test/unit/hours.test.ts': "import { perHour } from '../../shared/prices.js';\nperHour(1);\n",
  'test/unit/days.test.ts': "import { perDay } from '../../shared/prices.js';\nperDay(1);\n",
  'test/unit/bills.test.ts': "import { Bill } from '../../shared/prices.js';\nnew Bill().sum();\n",
  'test/unit/constants.test.ts': "import { HOUR } from '../../shared/prices.js';\nHOUR.toString();\n",
  'test/unit/tables.test.ts': "import { first } from '../../shared/table.js';\nfirst();\n",
  'test/unit/effects.test.ts': "import '../../shared/effect.js';\n",
  'test/check/all.test.ts': '',
};
type File = keyof typeof FILES;

/** Which parts each test runs, by the place of the file; and what ran while a file was loaded. */
const map = mapOf({
  'test/unit/hours.test.ts': { 'shared/prices.ts': ['perHour'], 'shared/round.ts': ['round'] },
  'test/unit/days.test.ts': { 'shared/prices.ts': ['perDay', 'perDay/map()'] },
  'test/unit/bills.test.ts': { 'shared/prices.ts': ['Bill/sum'] },
  'test/unit/constants.test.ts': { 'shared/prices.ts': [] },
  'test/unit/tables.test.ts': { 'shared/prices.ts': [], 'shared/table.ts': ['first'] },
  'test/unit/effects.test.ts': { 'shared/prices.ts': [], 'shared/effect.ts': [] },
  'test/check/all.test.ts': {},
});

function mapOf(ran: Record<string, Partial<Record<File, string[]>>>): TestMap {
  const indexes = (file: string, paths: string[]) => {
    const { parts } = readSource(file, FILES[file as File]).source;
    return paths.map((path) => parts.findIndex((part) => part.path === path && part.kind === 'function'));
  };
  const records = Object.entries(ran).map(([test, files]) => ({
    test,
    ran: Object.fromEntries(Object.entries(files).map(([file, paths]) => [file, indexes(file, paths)])),
    loading:
      'shared/table.ts' in files
        ? { 'shared/table.ts': { 'shared/prices.ts': indexes('shared/prices.ts', ['perDay', 'perDay/map()']) } }
        : {},
    loaded: Object.keys(files),
    touched: test === 'test/unit/days.test.ts' ? ['docs/prices.md', 'dist/shared/table.js'] : [],
  }));
  const head = { commit: '', uncommitted: [], unrecorded: [] };
  return buildMap(head, records, [...Object.keys(FILES), 'docs/prices.md'], (file) => FILES[file as File]);
}

const change = (file: string, text: string): Change => ({ file, isGone: false, source: readSource(file, text).source });

/** The names of the tests that are chosen where a text in a file is replaced. */
function chosenFor(file: File, before: string, after: string): string[] {
  expect(FILES[file]).toContain(before);
  return chosen(
    change(
      file,
      FILES[file].replace(before, () => after),
    ),
  );
}
function chosen(...changes: Change[]): string[] {
  const tests = choose(map, changes).flatMap((choice) => choice.tests);
  return [...new Set(tests)].map((test) => /([\w-]+)\.test\.ts$/.exec(test)?.[1] ?? '').sort();
}

describe('Of the tests those are chosen', () => {
  it('that ran a changed function', () => {
    expect(chosenFor('shared/prices.ts', 'round(price * HOUR)', 'round(price) * HOUR')).toEqual(['hours']);
    expect(chosenFor('shared/round.ts', 'Math.round', 'Math.floor')).toEqual(['hours']);
  });

  it('that ran a function within another, or used what was made with it when it was loaded', () => {
    expect(chosenFor('shared/prices.ts', 'one * DAY', 'one')).toEqual(['days', 'tables']);
  });

  it('that ran a function which is gone, or has another name', () => {
    expect(chosenFor('shared/prices.ts', 'function perHour', 'function hourly')).toEqual(['hours']);
    expect(chosenFor('shared/prices.ts', '\n  return round(price * HOUR);\n', '\n  return price;\n')).toEqual([
      'hours',
    ]);
  });

  it('that use a constant, also by way of others and of other files', () => {
    expect(chosenFor('shared/prices.ts', '24 * HOUR', '25 * HOUR')).toEqual(['bills', 'days', 'tables']);
    const all = ['bills', 'constants', 'days', 'effects', 'hours', 'tables'];
    expect(chosenFor('shared/prices.ts', '3_600', '3_601')).toEqual(all);
    expect(chosenFor('shared/table.ts', '[perDay(1)]', '[perDay(2)]')).toEqual(['tables']);
  });

  it('that use a class whose fields or methods are others', () => {
    expect(chosenFor('shared/prices.ts', 'most = DAY', 'most = 1')).toEqual(['bills']);
    expect(chosenFor('shared/prices.ts', '  sum():', '  more(): void {}\n  sum():')).toEqual(['bills']);
  });

  it('that use what is now imported from elsewhere', () => {
    expect(chosenFor('shared/prices.ts', "'./round.js'", "'./floor.js'")).toEqual(['hours']);
  });

  it('that load a file which does something else then', () => {
    expect(chosenFor('shared/effect.ts', 'String(HOUR)', "''")).toEqual(['effects']);
    expect(chosenFor('shared/effect.ts', 'import {', "import './more.js';\nimport {")).toEqual(['effects']);
  });

  it('that use anything of a file which is gone', () => {
    expect(chosen({ file: 'shared/table.ts', isGone: true })).toEqual(['tables']);
    expect(chosen({ file: 'test/unit/days.test.ts', isGone: true })).toEqual([]);
  });

  it('that have changed themselves, or are new', () => {
    expect(chosen({ file: 'test/unit/days.test.ts', isGone: false })).toEqual(['days']);
    expect(chosen({ file: 'test/unit/new.test.ts', isGone: false })).toEqual(['new']);
  });

  it('that read a changed file, or its folder where it is new; the checks, where none does', () => {
    expect(chosen({ file: 'docs/prices.md', isGone: false })).toEqual(['days']);
    expect(chosen({ file: 'docs/new.md', isGone: false })).toEqual(['all']);
  });

  it('that run a program which is made from the file, apart', () => {
    const [choice] = choose(map, [
      change('shared/round.ts', FILES['shared/round.ts'].replace('round(of)', 'floor(of)')),
    ]);
    expect(choice?.byProgram).toEqual(['test/unit/days.test.ts']);
  });

  it('all of them where packages or the protocol change', () => {
    expect(chosen({ file: 'package-lock.json', isGone: false })).toHaveLength(7);
    expect(chosen({ file: 'proto/gpurent/agent/v1/agent.proto', isGone: false })).toHaveLength(7);
  });

  it.each([
    ['a comment', 'return round(', '// Half up.\n  return round('],
    ['a type', '(price: number): number {\n  return round', '(price: 1 | 2) {\n  return round'],
    ['white space', 'return round(', 'return   round('],
    ['a new function that nobody calls', 'export class', 'export function unused() {}\nexport class'],
    ['a new type', 'export class', 'export interface Unused {}\nexport class'],
  ])('none for %s', (_what, before, after) => {
    expect(chosenFor('shared/prices.ts', before, after)).toEqual([]);
  });

  it('none for a new source, which only changed ones can use', () => {
    expect(chosen(change('shared/new.ts', 'export const NEW = 1;'))).toEqual([]);
  });
});

describe('The recording', () => {
  it('marks each function that runs, apart for the time in which the file is loaded', () => {
    const text = `
      const doubled = [1, 2].map((one) => one * 2);
      class Sum { constructor(readonly of: number[]) {} get total() { return this.of.reduce((a, b) => a + b); } }
      const unused = () => ({ a: 1 });
      function* all() { yield* doubled; }
      globalThis.tried = () => new Sum([...all()]).total;
    `;
    const recorder = new Recorder();
    const tried = {} as { tried: () => number };
    const { code } = withRecording('shared/any.ts', text);
    runInNewContext(code, Object.assign(tried, { [RECORDER]: recorder }));
    const { parts } = readSource('shared/any.ts', text).source;
    const paths = (indexes: number[] = []) => indexes.map((index) => parts[index]?.path).sort();
    expect(tried.tried()).toBe(6);
    const { ran, loading, loaded } = recorder.recorded();
    expect(loaded).toEqual(['shared/any.ts']);
    expect(paths(loading['shared/any.ts']?.['shared/any.ts'])).toEqual(['doubled/map()']);
    expect(paths(ran['shared/any.ts'])).toEqual([
      'Sum/constructor',
      'Sum/get total',
      'Sum/get total/reduce()',
      'all',
      'statement/tried',
    ]);
  });
});
