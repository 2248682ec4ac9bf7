import { PullRefused } from '../domain/pull-failure.js';

/** Largest manifest in bytes; Docker accepts none that is larger. */
const MOST_JSON_BYTES = 8 * 1024 * 1024;
/**
 * First bytes of a manifest: a brace or white space. A layer begins so only if it is a bare tar of an oddly named file.
 */
const MAY_BEGIN: readonly (number | undefined)[] = Array.from(Buffer.from('{ \t\n\r'));
const STRING = String.raw`"[^"\\]*(?:\\.[^"\\]*)*"`;
/** Matches each string of a JSON text: a key has a colon after it, and can have a string as its value. */
const STRINGS = new RegExp(String.raw`(${STRING})(?:(\s*:\s*)(${STRING})?)?`, 'gs');

/**
 * Throws PullRefused for a manifest that names other addresses of its layers: with containerd's image store, Docker
 * fetches from these by itself, past the relay. The check covers every key, because Go's parser differs: it takes
 * "URLS" for "urls", and reads the first of two equal keys as well. It also covers a manifest inside of another
 * (`data`).
 * Throws PullRefused also for an incomplete manifest: containerd keeps the first part and requests the rest, so that a
 * key could come in two parts. Nor does it accept one with a string so long that it cannot be searched.
 */
export function refuseOtherPlaces(content: Buffer): void {
  try {
    searchPlaces(content);
  } catch (error) {
    // The search for strings, too, has a stack.
    throw error instanceof RangeError ? new PullRefused('unsound') : error;
  }
}

function searchPlaces(content: Buffer): void {
  if (!MAY_BEGIN.includes(content[0])) return;
  const text = content.toString();
  if (!isWhole(text)) throw new PullRefused('unsound');
  for (const [, key = '""', colon, value] of text.matchAll(STRINGS)) {
    const name = colon === undefined ? '' : (JSON.parse(key) as string).toUpperCase();
    if (name === 'URLS') throw new PullRefused('foreign_layers');
    if (name !== 'DATA') continue;
    // Go also accepts an array of numbers.
    if (value === undefined) throw new PullRefused('unsound');
    searchPlaces(Buffer.from(JSON.parse(value) as string, 'base64'));
  }
}

function isWhole(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/**
 * Passes a blob on. Holds a blob that can be a manifest until it has been checked, because containerd fetches manifests
 * as blobs if it has to.
 */
export async function* withoutOtherPlaces(blob: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const held: Buffer[] = [];
  let size = 0;
  let mayBeManifest: boolean | undefined;
  for await (const part of blob) {
    mayBeManifest ??= MAY_BEGIN.includes(part[0]);
    if (!mayBeManifest) {
      yield part;
      continue;
    }
    size += part.length;
    if (size > MOST_JSON_BYTES) throw new PullRefused('unsound');
    held.push(part);
  }
  if (held.length === 0) return;
  const whole = Buffer.concat(held);
  refuseOtherPlaces(whole);
  yield whole;
}
