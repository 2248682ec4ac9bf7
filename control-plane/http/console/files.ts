import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { extname, join } from 'node:path';

/** A file of the console, in the encodings that the build has made: Brotli, gzip, and as it is. */
export interface ConsoleFile {
  type: string;
  plain: Buffer;
  br: Buffer | undefined;
  gzip: Buffer | undefined;
  /** Changes when the content does. */
  hash: string;
}

/** The console as it was built. It is a few megabytes at most, so it is kept in memory. */
export interface ConsoleFiles {
  page: ConsoleFile;
  /** By file name. A name has a hash of the content in it. */
  assets: ReadonlyMap<string, ConsoleFile>;
}

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
};

/** Reads the built console; undefined: it was not built. */
export function readConsole(folder: string): ConsoleFiles | undefined {
  const page = join(folder, 'index.html');
  const assets = join(folder, 'assets');
  if (!existsSync(page) || !existsSync(assets)) return undefined;
  const names = readdirSync(assets).filter((name) => TYPES[extname(name)] !== undefined);
  return { page: readEncoded(page), assets: new Map(names.map((name) => [name, readEncoded(join(assets, name))])) };
}

function readEncoded(file: string): ConsoleFile {
  const plain = readFileSync(file);
  const encoded = (ending: string) => (existsSync(file + ending) ? readFileSync(file + ending) : undefined);
  return {
    type: TYPES[extname(file)] ?? 'application/octet-stream',
    plain,
    br: encoded('.br'),
    gzip: encoded('.gz'),
    hash: createHash('sha256').update(plain).digest('base64url').slice(0, 22),
  };
}

/** Returns the smallest form of a file that a client takes, by its `Accept-Encoding`. */
export function encodedFor(
  file: ConsoleFile,
  accepted: string | undefined,
): { body: Buffer; encoding: 'br' | 'gzip' | undefined } {
  const takes = encodingsIn(accepted ?? '');
  for (const encoding of ['br', 'gzip'] as const) {
    const body = file[encoding];
    if (body && takes(encoding)) return { body, encoding };
  }
  return { body: file.plain, encoding: undefined };
}

/** Returns which encodings a header allows: those that it names without the weight 0; `*` stands for those that it does not name. */
function encodingsIn(header: string): (name: string) => boolean {
  const named = header.split(',').map((each) => each.split(';').map((part) => part.trim().toLowerCase()));
  const taken = new Map(named.map(([name = '', ...weights]) => [name, !weights.some(isZero)]));
  return (name) => taken.get(name) ?? taken.get('*') ?? false;
}

function isZero(parameter: string): boolean {
  return /^q=0(\.0*)?$/.test(parameter);
}
