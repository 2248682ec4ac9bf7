import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const docs = (...names: string[]) => names.map((name) => `docs/${name}.md`);

/** The guides whose blocks are run on a machine: see `test/machine/guide-plan.ts`. */
export const RUN_GUIDES = ['README.md', ...docs('operator', 'day-two', 'host-owner', 'renter')];

/** What a reader pastes into a shell. */
export interface Block {
  /** The guide's file name and the heading above: "day-two.md: Prices"; the second under one heading ends with " (2)". */
  name: string;
  text: string;
}

export const readGuide = (file: string) => readFileSync(join(ROOT, file), 'utf8');

/** The shell blocks of a guide, as they stand in it. */
export const shellBlocks = (text: string) => [...text.matchAll(/^```sh\n([^]*?)^```/gm)].map(([, block = '']) => block);

/** The same with names. `file` is a path from the root. */
export function namedBlocks(file: string, text = readGuide(file)): Block[] {
  const seen = new Map<string, number>();
  // What begins with # in a block of another kind, or in this one, is no heading.
  return [...text.matchAll(/^```(\w*)\n([^]*?)^```|^#+ (.+)$/gm)].reduce<{ heading: string; blocks: Block[] }>(
    (found, [, language, block = '', heading]) => {
      if (heading !== undefined) return { ...found, heading };
      if (language !== 'sh') return found;
      const name = `${file.replace(/^.*\//, '')}: ${found.heading}`;
      const nth = (seen.get(name) ?? 0) + 1;
      seen.set(name, nth);
      return { ...found, blocks: [...found.blocks, { name: nth === 1 ? name : `${name} (${nth})`, text: block }] };
    },
    { heading: '', blocks: [] },
  ).blocks;
}

/** The first shell block below a heading. */
export function blockOf(file: string, heading: string): string {
  const name = `${file.replace(/^.*\//, '')}: ${heading}`;
  const found = namedBlocks(file).find((block) => block.name === name);
  if (!found) throw new Error(`${file} has no shell block below "${heading}"`);
  return found.text;
}

/** The commands of a block, each with its continued lines and here-documents. */
export function commandsIn(block: string): string[] {
  const commands: string[] = [];
  let command = '';
  let endOfDocument: string | undefined;
  for (const line of block.split('\n')) {
    command += `${line}\n`;
    if (endOfDocument === undefined) [, endOfDocument] = /<<'(\w+)'/.exec(line) ?? [];
    else if (line === endOfDocument) endOfDocument = undefined;
    if (endOfDocument !== undefined || line.endsWith('\\')) continue;
    if (!/^\s*(#.*)?\s*$/.test(command)) commands.push(command);
    command = '';
  }
  return commands;
}

/** `text`, after a look whether the guide says it word for word. */
export function inlineOf(file: string, text: string): string {
  if (!readGuide(file).includes(`\`${text}\``)) throw new Error(`${file} no longer says \`${text}\``);
  return text;
}
