import { PullRefused } from '../domain/pull-failure.js';

/** Of what may be a manifest; Docker takes none that is larger. */
const MOST_JSON_BYTES = 8 * 1024 * 1024;
/** A manifest begins with a brace, or with white space. A layer does so only as a bare tar of an oddly named file. */
const MAY_BEGIN: readonly (number | undefined)[] = Array.from(Buffer.from('{ \t\n\r'));
const STRING = String.raw`"[^"\\]*(?:\\.[^"\\]*)*"`;
/** Each string of a JSON text: a key has a colon, and may have a string as its value. */
const STRINGS = new RegExp(String.raw`(${STRING})(?:(\s*:\s*)(${STRING})?)?`, 'gs');

/**
 * Throws PullRefused for a manifest that names other places of its layers: where Docker keeps images in containerd's store, it asks
 * these by itself. Every key counts, also of what a second parser would not see: Go takes "URLS" for "urls", and the first of two
 * equal keys as well. A manifest that is inside of another (`data`) counts, too.
 *
 * Throws PullRefused also for a manifest that is not whole: containerd keeps the first part and asks for the rest, so that a key
 * could come in two parts.
 */
export function refuseOtherPlaces(content: Buffer): void {
  if (!MAY_BEGIN.includes(content[0])) return;
  const text = content.toString();
  if (!isWhole(text)) throw new PullRefused('unsound');
  for (const [, key = '""', colon, value] of text.matchAll(STRINGS)) {
    const name = colon === undefined ? '' : (JSON.parse(key) as string).toUpperCase();
    if (name === 'URLS') throw new PullRefused('foreign_layers');
    if (name !== 'DATA') continue;
    // Go takes an array of numbers, too.
    if (value === undefined) throw new PullRefused('unsound');
    refuseOtherPlaces(Buffer.from(JSON.parse(value) as string, 'base64'));
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

/** Passes a blob on; one that may be a manifest, once it has been looked at: containerd fetches manifests as blobs where it has to. */
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
