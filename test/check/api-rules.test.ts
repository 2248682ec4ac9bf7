import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const RULES = 'docs/api-rules.md';
const FOLDERS = ['control-plane', 'agent', 'shared', 'proto', 'scripts', 'packaging', 'docs', 'test'];
const CITING = /\.(ts|js|cjs|sh|md|proto|yaml|yml|html)$|^scripts\/[^.]*$/;

const read = (file: string) => readFileSync(`${ROOT}${file}`, 'utf8');

/** Every file that people write, by its path from the root. */
function sources(): string[] {
  const inFolders = FOLDERS.flatMap((folder) =>
    readdirSync(`${ROOT}${folder}`, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map(({ parentPath, name }) => `${parentPath}/${name}`.slice(ROOT.length)),
  );
  const atRoot = readdirSync(ROOT, { withFileTypes: true }).filter((entry) => entry.isFile());
  return [...inFolders, ...atRoot.map(({ name }) => name)];
}

/** The numbers that the document gives to rules, in its order. */
const numbersIn = (text: string) => [...text.matchAll(/^\*\*(\d+)\.\*\* /gm)].map(([, number]) => Number(number));

/** Every number after "rule" or "rules", also of lists and ranges, with whether it is the API's rules that are meant. */
function citationsIn(text: string): { isExact: boolean; number: number }[] {
  const plain = text.replace(/\n\s*(?:\*|\/\/|#)?\s*/g, ' ');
  const found = plain.matchAll(/(\bAPI )?\brules? (\d+(?:(?:, | and | to |, and )\d+)*)/gi);
  return [...found].flatMap(([, api, numbers = '']) =>
    numbers.split(/\D+/).map((number) => ({ isExact: api === 'API ', number: Number(number) })),
  );
}

/** What is wrong with the citations of a text, given how many rules there are. */
function faultsOf(text: string, known: readonly number[]): string[] {
  return citationsIn(text).flatMap(({ isExact, number }) => {
    if (!isExact) return [`"rule ${number}" does not say "API rule"`];
    return known.includes(number) ? [] : [`there is no API rule ${number}`];
  });
}

it('numbers each rule once, without gaps', () => {
  const numbers = numbersIn(read(RULES));
  expect(numbers.length).toBeGreaterThan(40);
  expect([...numbers].sort((one, other) => one - other)).toEqual(numbers.map((_, index) => index + 1));
});

it('every citation of a rule names one that there is', () => {
  const known = numbersIn(read(RULES));
  const citing = sources().filter((file) => CITING.test(file) && file !== 'test/check/api-rules.test.ts');
  const cited = citing.filter((file) => file !== RULES && citationsIn(read(file)).length > 0);
  expect(cited.length).toBeGreaterThan(8);
  expect(citing.flatMap((file) => faultsOf(read(file), known).map((fault) => `${file}: ${fault}`))).toEqual([]);
});

it('what it looks for is found', () => {
  expect(faultsOf('(API rules 1, 2 and 3), API rules 1 to 3', [1, 2, 3])).toEqual([]);
  expect(faultsOf('API rule 4', [1])).toEqual(['there is no API rule 4']);
  expect(faultsOf('API rules 1 and 5', [1])).toEqual(['there is no API rule 5']);
  expect(faultsOf('/**\n * As API\n * rule 7.\n */', [1])).toEqual(['there is no API rule 7']);
  expect(faultsOf('deploy rule 1', [1])).toEqual(['"rule 1" does not say "API rule"']);
  expect(faultsOf('Rule 1', [1])).toEqual(['"rule 1" does not say "API rule"']);
});
