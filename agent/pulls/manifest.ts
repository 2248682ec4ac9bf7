import { PullRefused } from '../domain/pull-failure.js';

/** Of what may be a manifest; Docker takes none that is larger. */
const MOST_JSON_BYTES = 8 * 1024 * 1024;
const STRING = /"[^"\\]*(?:\\.[^"\\]*)*"(\s*:)?/gs;
const WHITE = [0x20, 0x09, 0x0a, 0x0d];
const BRACE = 0x7b;

/**
 * Throws PullRefused for a manifest that names other places of its layers: where Docker keeps images in containerd's store, it asks
 * these by itself. Every key counts, also of what a second parser would not see: Go takes "URLS" for "urls", and the first of two
 * equal keys as well.
 */
export function refuseOtherPlaces(manifest: string): void {
  for (const [found, colon] of manifest.matchAll(STRING))
    if (colon !== undefined && keyIn(found.slice(0, -colon.length)).toUpperCase() === 'URLS')
      throw new PullRefused('foreign_layers');
}

function keyIn(literal: string): string {
  try {
    return JSON.parse(literal) as string;
  } catch {
    // Go refuses it, too.
    return '';
  }
}

/** Passes a blob on; one that may be a manifest, once it has been looked at: containerd fetches manifests as blobs where it has to. */
export async function* withoutOtherPlaces(blob: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let head: Buffer[] = [];
  let size = 0;
  let isJson: boolean | undefined;
  for await (const part of blob) {
    const first = isJson === undefined ? part.find((byte) => !WHITE.includes(byte)) : undefined;
    if (first !== undefined) isJson = first === BRACE;
    if (isJson === false) {
      yield* head;
      head = [];
      yield part;
      continue;
    }
    size += part.length;
    if (size > MOST_JSON_BYTES) throw new PullRefused('unsound');
    head.push(part);
  }
  if (isJson) refuseOtherPlaces(Buffer.concat(head).toString());
  yield* head;
}
