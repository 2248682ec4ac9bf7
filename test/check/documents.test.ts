import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const filesIn = (...patterns: string[]) =>
  execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', ...patterns], {
    cwd: ROOT,
    encoding: 'utf8',
  })
    .trim()
    .split('\n');
const DOCUMENTS = filesIn('*.md', 'docs/**/*.md').filter((file) => existsSync(join(ROOT, file)));
const read = (file: string) => readFileSync(join(ROOT, file), 'utf8');

interface Link {
  text: string;
  /** Inside the repository. */
  target: string;
  /** Empty where it names none. */
  anchor: string;
}

/** The relative links of a document, without what stands in blocks of code. */
function linksIn(file: string, text: string): Link[] {
  // A change becomes a part of CHANGELOG.md, and links from there.
  const folder = /^changes\/(?!README)/.test(file) ? '.' : dirname(file);
  const prose = text.replace(/^```[^]*?^```/gm, '');
  return [...prose.matchAll(/\[([^\]\n]*)\]\((?![a-z]+:)([^)#\s]*)(?:#([^)\s]*))?\)/g)].map(
    ([, label = '', path = '', anchor = '']) => ({
      text: label,
      target: path === '' ? file : normalize(join(folder, path)),
      anchor,
    }),
  );
}

/** How GitHub names the headings of a document in links. */
function anchorsOf(text: string): Set<string> {
  const headings = [...text.replace(/^```[^]*?^```/gm, '').matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) => heading);
  return new Set(
    headings.map((heading) =>
      heading
        .toLowerCase()
        .replace(/[^\p{L}\p{N} _-]/gu, '')
        .replaceAll(' ', '-'),
    ),
  );
}

/** What is wrong with a link; undefined: nothing. */
function faultOf({ text, target, anchor }: Link): string | undefined {
  const path = join(ROOT, target);
  if (!existsSync(path)) return `${target} does not exist`;
  if (anchor !== '' && !anchorsOf(readFileSync(path, 'utf8')).has(anchor)) return `${target} has no heading #${anchor}`;
  const [, name] = /^`(\w+)`$/.exec(text) ?? [];
  const isSource = statSync(path).isFile() && /\.(ts|proto)$/.test(target);
  if (name !== undefined && isSource && !new RegExp(`\\b${name}\\b`).test(readFileSync(path, 'utf8')))
    return `${target} does not have ${name}`;
  return undefined;
}

describe.each(DOCUMENTS)('%s', (file) => {
  it('links to files, headings and functions that there are', () => {
    expect(linksIn(file, read(file)).flatMap((link) => faultOf(link) ?? [])).toEqual([]);
  });
});

describe('the glossary', () => {
  const sources = filesIn('control-plane', 'agent', 'shared', 'proto')
    .filter((file) => /\.(ts|proto)$/.test(file) && existsSync(join(ROOT, file)))
    .map(read)
    .join('\n');
  const terms = [...read('docs/dev/glossary.md').matchAll(/`([^`\n]+)`/g)].map(([, term = '']) => term);

  it('names in code what the sources have', () => {
    expect(terms.length).toBeGreaterThan(60);
    expect(terms.filter((term) => !sources.includes(term))).toEqual([]);
  });

  it('has each term once', () => {
    const named = [...read('docs/dev/glossary.md').matchAll(/^\| (?!term |---)([^|]+) \|/gm)].map(([, term]) => term);
    expect(named.filter((term, index) => named.indexOf(term) !== index)).toEqual([]);
  });
});

it('finds what is wrong', () => {
  const fault = (text: string) => linksIn('docs/dev/lifecycle.md', text).map(faultOf);
  expect(fault('[a](nowhere.md)')).toEqual(['docs/dev/nowhere.md does not exist']);
  expect(fault('[a](money.md#nothing) [b](#deploy)')).toEqual(['docs/dev/money.md has no heading #nothing', undefined]);
  const store = 'control-plane/store/store.ts';
  expect(fault(`[\`Storage\`](../../${store}) [\`Store\`](../../${store})`)).toEqual([
    `${store} does not have Storage`,
    undefined,
  ]);
});
