import { readFileSync } from 'node:fs';
import type { Command } from 'commander';
import { beforeAll, describe, expect, it } from 'vitest';
import { EXIT } from '../../client/cli/errors/exit-codes.js';
import { createProgram } from '../../client/cli/program.js';
import type { Terminal } from '../../client/cli/terminal/terminal.js';

const read = (file: string) => readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8');
const guide = read('docs/cli.md');

let commands: Map<string, Command>;
beforeAll(async () => {
  const { program, loadAll } = createProgram({ env: {} } as Terminal);
  await loadAll();
  const below = (command: Command, path: string): [string, Command][] => [
    [path, command],
    ...command.commands.flatMap((each) => below(each, `${path} ${each.name()}`)),
  ];
  commands = new Map(below(program, 'gpurent'));
});

/** Each command line of a text: in a block, or as code in a sentence. */
function linesOf(text: string): string[] {
  const blocks = [...text.matchAll(/^```sh\n([^]*?)^```/gm)].flatMap(([, block = '']) =>
    block.replace(/\\\n\s*/g, ' ').split('\n'),
  );
  const inline = [...text.matchAll(/`([^`\n]+)`/g)].map(([, code = '']) => code);
  return [...blocks, ...inline].map((line) => line.replace(/ +#.*$/, '')).filter((line) => /^gpurent( |$)/.test(line));
}

/** What is wrong with a command line; undefined: nothing. */
function faultOf(line: string): string | undefined {
  const [before = ''] = line.split(' -- ');
  const words = before.split(/ +/);
  let path = words.shift() ?? '';
  while (words[0] !== undefined && commands.has(`${path} ${words[0]}`)) path += ` ${words.shift() ?? ''}`;
  const command = commands.get(path);
  const given = words.filter((word) => word.startsWith('-')).map((word) => word.split('=')[0] ?? '');
  const known = new Set<string | undefined>(['--help']);
  for (let each: Command | null | undefined = command; each; each = each.parent)
    for (const { long, short } of each.options) known.add(long).add(short);
  const unknown = given.filter((option) => !known.has(option));
  if (unknown.length > 0) return `no ${unknown.join(', ')}`;
  const takesNone = path === 'gpurent' || (command?.commands.length !== 0 && command?.registeredArguments.length === 0);
  return takesNone && words[0] !== undefined && !words[0].startsWith('-')
    ? `no command ${path} ${words[0]}`
    : undefined;
}

describe.each([
  'docs/cli.md',
  'docs/renter.md',
  'docs/mcp.md',
  'docs/operator.md',
  'README.md',
  'client/cli/README.md',
])('%s', (file) => {
  it('names commands and options of gpurent that there are', () => {
    const faults = linesOf(read(file)).flatMap((line) => {
      const fault = faultOf(line);
      return fault === undefined ? [] : [`${line}: ${fault}`];
    });
    expect(faults).toEqual([]);
  });
});

it('notices a command and an option that there are not', () => {
  expect([faultOf('gpurent rent'), faultOf('gpurent offers make'), faultOf('gpurent ls --every')]).not.toContain(
    undefined,
  );
  expect(linesOf('`gpurent ls` and\n```sh\ngpurent show X # one\n```\n')).toEqual(['gpurent show X', 'gpurent ls']);
});

it('docs/cli.md has each command, and each option where its command is', () => {
  const paragraphs = guide.split('\n');
  const missing = [...commands].flatMap(([path, command]) => {
    if (path === 'gpurent help') return [];
    const [, top = ''] = path.split(' ');
    const near = paragraphs.filter((line) => line.includes(`gpurent ${top}`)).join('\n');
    const names = command.options.map(({ long }) => long ?? '').filter((name) => name !== '--version');
    const where = top === '' || top === 'deploy' ? guide : near;
    const options = names
      .filter((name) => !new RegExp(`${name}(?![a-z-])`).test(where))
      .map((name) => `${path} ${name}`);
    return [...(guide.includes(path) ? [] : [path]), ...options];
  });
  expect(missing).toEqual([]);
});

it('docs/cli.md has each exit code', () => {
  const [, table = ''] = /## Exit codes\n([^]*?)\n## /.exec(guide) ?? [];
  const listed = [...table.matchAll(/^\| (\d+) \|/gm)].map(([, code]) => Number(code));
  expect(listed).toEqual(Object.values(EXIT));
});
