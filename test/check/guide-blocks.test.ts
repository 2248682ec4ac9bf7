import { describe, expect, it } from 'vitest';
import { RUN_GUIDES, commandsIn, inlineOf, namedBlocks } from '../harness/guide-blocks.js';
import { AT_NIGHT, BY_DAY, NOT_RUN } from '../machine/guide-plan.js';

describe('the shell blocks of the guides', () => {
  const names = RUN_GUIDES.flatMap((file) => namedBlocks(file)).map(({ name }) => name);

  it('are each run on a machine, or listed with the reason why not', () => {
    const planned = new Set([...BY_DAY, ...AT_NIGHT, ...Object.keys(NOT_RUN)]);
    expect(names.filter((name) => !planned.has(name))).toEqual([]);
    expect([...planned].filter((name) => !names.includes(name))).toEqual([]);
    expect(Object.keys(NOT_RUN).filter((name) => [...BY_DAY, ...AT_NIGHT].includes(name))).toEqual([]);
  });

  it('have names of their own', () => expect(new Set(names).size).toBe(names.length));
});

it('a block is found under its heading, and read command by command', () => {
  const guide =
    "# One\n```json\n# no heading\n```\n```sh\n# a comment\necho a \\\n  b\ncat <<'E'\n# x\n\nE\n```\n## Two\n```sh\nd\n```\n```sh\ne\n```\n";
  expect(namedBlocks('docs/x.md', guide)).toEqual([
    { name: 'x.md: One', text: "# a comment\necho a \\\n  b\ncat <<'E'\n# x\n\nE\n" },
    { name: 'x.md: Two', text: 'd\n' },
    { name: 'x.md: Two (2)', text: 'e\n' },
  ]);
  expect(commandsIn(namedBlocks('docs/x.md', guide)[0]?.text ?? '')).toEqual([
    'echo a \\\n  b\n',
    "cat <<'E'\n# x\n\nE\n",
  ]);
  expect(() => inlineOf('docs/renter.md', 'rm -rf /')).toThrow('no longer says');
});
