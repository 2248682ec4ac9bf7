import { createHash } from 'node:crypto';
import { dirname, join } from 'node:path';
import { parseSync, transformSync } from 'rolldown/utils';
import { PartFinder, type Node } from './parts.js';
import type { Body, Source } from './source.js';

/** The folder behind `#text/`, see package.json. */
const TEXT = 'console/src/text';

interface ReadSource {
  source: Source;
  /** The file's text without types, in which the bodies are. */
  code: string;
  map: unknown;
  bodies: Body[];
  /** Where its first statement begins. */
  start: number;
}

/** Reads a TypeScript source. `file` is its path from the repository's root. Throws if it cannot be parsed. */
export function readSource(file: string, text: string): ReadSource {
  const { code, map, errors } = transformSync(file, text, { jsx: 'preserve', tsconfig: false, sourcemap: true });
  const parsed = parseSync(file, code);
  const [error] = [...errors, ...parsed.errors];
  if (error) throw new Error(`${file}: ${error.message}`);
  const statements = parsed.program.body as unknown as Node[];
  const source: Source = { parts: [], imports: {}, exports: {}, passesOn: [], effects: [] };
  const finder = new PartFinder();
  const resolve = (from: string) => resolveFrom(file, from);
  for (const statement of statements) {
    if (readLinks(statement, source, resolve)) continue;
    finder.addStatement(statement.type.startsWith('Export') ? (statement.declaration ?? statement) : statement);
  }
  for (const from of finder.dynamicImports) source.imports[`import(${from})`] = { from: resolve(from), name: '*' };
  const known = new Set([...Object.keys(source.imports), ...finder.topLevelNames()]);
  source.parts = finder.found.map(({ path, kind, declares, uses, ...range }) => ({
    path,
    kind,
    hash: hashOf(ownText(code, range, parsed.comments)),
    uses: [...uses].filter((name) => known.has(name)).sort(),
    declares,
  }));
  return { source, code, map, bodies: finder.bodies, start: statements[0]?.start ?? code.length };
}

/** The path without extension of what `from` means in `file`; a package stays as it is. */
export function resolveFrom(file: string, from: string): string {
  const path = from.startsWith('#text/') ? join(TEXT, from.slice('#text/'.length)) : join(dirname(file), from);
  return from.startsWith('.') || from.startsWith('#text/') ? keyOf(path) : from;
}

export function keyOf(path: string): string {
  return path.replace(/\.[jt]sx?$/, '');
}

/** Adds what a statement imports and exports. Returns whether that is all it does. */
function readLinks(statement: Node, source: Source, resolve: (from: string) => string): boolean {
  const { type, specifiers = [] } = statement;
  const from = statement.source ? resolve(nameOf(statement.source)) : undefined;
  if (type === 'ImportDeclaration' && from !== undefined) {
    if (specifiers.length === 0) source.effects.push(from);
    for (const { local, imported, type: kind } of specifiers) {
      const name = kind === 'ImportNamespaceSpecifier' ? '*' : nameOf(imported, 'default');
      source.imports[nameOf(local)] = { from, name };
    }
    return true;
  }
  if (type === 'ExportAllDeclaration' && from !== undefined) {
    if (statement.exported) source.exports[nameOf(statement.exported)] = { from, name: '*' };
    else source.passesOn.push(from);
    return true;
  }
  if (type === 'ExportDefaultDeclaration') source.exports['default'] = nameOf(statement.declaration?.id, 'default');
  if (type !== 'ExportNamedDeclaration') return false;
  for (const { local, exported } of specifiers)
    source.exports[nameOf(exported)] = from === undefined ? nameOf(local) : { from, name: nameOf(local) };
  for (const name of PartFinder.namesOf(statement.declaration)) source.exports[name] = name;
  return !statement.declaration;
}

function nameOf(node: Node | null | undefined, otherwise = ''): string {
  return node?.name ?? (typeof node?.value === 'string' ? node.value : otherwise);
}

interface Range {
  start: number;
  end: number;
}

/** The text of a part without comments and without the functions in it. */
function ownText(code: string, { start, end, holes }: Range & { holes: Range[] }, comments: Range[]): string {
  const left = [...holes, ...comments.filter((comment) => comment.start >= start && comment.end <= end)];
  left.sort((one, other) => one.start - other.start);
  let at = start;
  let text = '';
  for (const hole of left) {
    if (hole.start < at) continue;
    const isFunction = holes.includes(hole);
    text += code.slice(at, hole.start) + (isFunction ? '\0' : '');
    at = hole.end;
    if (!isFunction) while (/\s/.test(code[at] ?? '')) at++;
  }
  return text + code.slice(at, end);
}

function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('base64url').slice(0, 12);
}
