import { once } from 'node:events';
import { Readable } from 'node:stream';
import { messageOf } from '../../../../shared/coded-error.js';
import { extract, pack, type Pack } from 'tar-stream';
import { Failure } from '../../../domain/failure.js';

const GB = 1_000_000_000;

/**
 * Returns an archive with the only file of an image's `/disk`, of at most `maxBytes`, as `disk/base`, readable by
 * everybody and writable by nobody. `source`: an archive of `/disk`. The returned stream fails with Failure
 * IMAGE_UNAVAILABLE unless there is exactly one plain file.
 */
export function baseDiskArchive(source: NodeJS.ReadableStream, maxBytes: number): Readable {
  const packed = pack();
  void copyDisk(source, maxBytes, packed).catch((error: unknown) =>
    packed.destroy(error instanceof Error ? error : new Error(messageOf(error))),
  );
  return asReadable(packed);
}

async function copyDisk(source: NodeJS.ReadableStream, maxBytes: number, packed: Pack): Promise<void> {
  const entries = extract();
  source.on('error', (error: Error) => entries.destroy(error));
  source.pipe(entries);
  let found = false;
  for await (const entry of entries) {
    const { type, size } = entry.header;
    if (type === 'directory') {
      entry.resume();
      continue;
    }
    if (type !== 'file' || found) throw refused('holds something beside one plain file');
    if (size > maxBytes) throw refused(`holds a file of ${Math.ceil(size / GB)} GB, more than was rented`);
    found = true;
    const copy = packed.entry({ name: 'disk/base', size, mode: 0o444, uid: 0, gid: 0 });
    for await (const chunk of entry as AsyncIterable<Buffer>) if (!copy.write(chunk)) await once(copy, 'drain');
    copy.end(undefined);
  }
  if (!found) throw refused('is empty');
  packed.finalize();
}

function refused(what: string): Failure {
  return new Failure(
    'IMAGE_UNAVAILABLE',
    `its folder /disk ${what}; it must contain the disk of the virtual machine and nothing else`,
  );
}

/** Returns an archive of small files, given by name, that belong to the user and group `owner`. */
export function archiveOf(files: Record<string, string>, owner: number): Readable {
  const packed = pack();
  for (const [name, text] of Object.entries(files)) packed.entry({ name, mode: 0o600, uid: owner, gid: owner }, text);
  packed.finalize();
  return asReadable(packed);
}

/** Converts an archive to the kind of stream that Docker's client accepts. */
function asReadable(packed: Pack): Readable {
  return Readable.from(packed as AsyncIterable<Buffer>, { objectMode: false });
}
