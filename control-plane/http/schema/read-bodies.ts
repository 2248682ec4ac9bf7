import { isUtf8 } from 'node:buffer';
import type { FastifyInstance, FastifyRequest } from 'fastify';

/** The deepest JSON that is parsed, and the most values in it. The largest body that a route takes has far less of both. */
export const MOST_DEPTH = 64;
export const MOST_VALUES = 20_000;

/** An escape that is half of a character, unless the other half stands beside it. */
const HALF_ESCAPE = /\\u[dD][89a-fA-F]/;
const HALF = /\p{Surrogate}/u;
const [QUOTE, COMMA, BACKSLASH] = [0x22, 0x2c, 0x5c];
const OPENING = [0x5b, 0x7b];
const CLOSING = [0x5d, 0x7d];

/** Why a body is not read: the codes by which the table of errors knows it. */
type Fault = 'MALFORMED_JSON' | 'NOT_UTF8' | 'TOO_DEEP' | 'TOO_MANY_VALUES' | 'HALF_CHARACTER';

/**
 * Reads bodies of JSON. Refuses text that would not be kept as it was sent, and, before it is parsed, JSON whose form alone costs much:
 * parsing megabytes of brackets takes seconds, and what walks through the result can run out of stack. Accepts an empty body with any
 * content type.
 */
export function readJson(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  const parse = app.getDefaultJsonParser('error', 'error');
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (request, body: Buffer, done) => {
    if (body.length === 0) return done(null, undefined);
    if (!isUtf8(body)) return done(unreadable('NOT_UTF8'));
    const text = body.toString();
    const fault = faultOfForm(text);
    if (fault) return done(unreadable(fault));
    void parse(request, text, (error, value: unknown) => {
      if (error) return done(unreadable('MALFORMED_JSON'));
      if (HALF_ESCAPE.test(text) && !isWellFormed(value)) return done(unreadable('HALF_CHARACTER'));
      done(null, value);
    });
  });
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body: Buffer, done) => {
    if (body.length === 0) return done(null, undefined);
    done(Object.assign(new Error('not JSON'), { code: 'FST_ERR_CTP_INVALID_MEDIA_TYPE' }));
  });
}

/** Reads a body as text, for a route that looks at its exact bytes. Throws at bytes that are not UTF-8. */
export function readText(body: Buffer): string {
  if (!isUtf8(body)) throw unreadable('NOT_UTF8');
  return body.toString();
}

/**
 * Reads a form of a page. Throws if what it says is not UTF-8, be it as bytes or as escapes. Of a field that comes twice the first counts.
 */
export function readForm(body: Buffer): Record<string, string> {
  const bytes = body.toString('latin1').replace(/%([0-9a-f]{2})/gi, (_, hex: string) => {
    return String.fromCharCode(Number.parseInt(hex, 16));
  });
  if (!isUtf8(Buffer.from(bytes, 'latin1'))) throw Object.assign(new Error('not UTF-8'), { code: 'FORM_NOT_UTF8' });
  const fields = new Map<string, string>();
  for (const [name, value] of new URLSearchParams(body.toString()))
    if (value !== '' && !fields.has(name)) fields.set(name, value);
  return Object.fromEntries(fields);
}

/** Refuses bodies with a `Content-Encoding`: none is decoded here, and what is in them would be taken for something else. */
export function refuseEncodedBodies(app: FastifyInstance): void {
  app.addHook('preParsing', (request, reply, payload, done) => {
    if (!isEncoded(request)) return done(null, payload);
    void reply.header('Accept-Encoding', 'identity');
    done(unreadable('ENCODED_BODY'));
  });
}

function isEncoded({ headers, method }: FastifyRequest): boolean {
  const encodings = (headers['content-encoding'] ?? '').split(',').map((each) => each.trim().toLowerCase());
  if (encodings.every((each) => each === '' || each === 'identity')) return false;
  // What comes with a GET is not read.
  if (method === 'GET' || method === 'HEAD') return false;
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

function unreadable(code: Fault | 'ENCODED_BODY'): Error {
  return Object.assign(new Error(`the body cannot be read: ${code}`), { code });
}

/** Looks at the brackets and commas of a JSON text outside of its strings. Whether it is JSON at all is for the parser to say. */
function faultOfForm(text: string): Fault | undefined {
  let depth = 0;
  let values = 0;
  for (let at = 0; at < text.length; at++) {
    const char = text.charCodeAt(at);
    if (char === QUOTE) at = endOfString(text, at);
    else if (char === COMMA) values += 1;
    else if (CLOSING.includes(char)) depth -= 1;
    else if (OPENING.includes(char)) [depth, values] = [depth + 1, values + 1];
    if (depth > MOST_DEPTH) return 'TOO_DEEP';
    if (values > MOST_VALUES) return 'TOO_MANY_VALUES';
  }
  return undefined;
}

/** Returns where the string ends that begins at `start`. */
function endOfString(text: string, start: number): number {
  let at = start + 1;
  for (let char = text.charCodeAt(at); at < text.length && char !== QUOTE; char = text.charCodeAt(at))
    at += char === BACKSLASH ? 2 : 1;
  return at;
}

/** Tells whether no text in a value of JSON has half of a character. Its depth is bounded. */
function isWellFormed(value: unknown): boolean {
  if (typeof value === 'string') return !HALF.test(value);
  if (typeof value !== 'object' || value === null) return true;
  return Object.entries(value).every(([name, each]) => !HALF.test(name) && isWellFormed(each));
}
