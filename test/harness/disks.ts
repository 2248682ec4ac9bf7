import { Readable } from 'node:stream';
import { pack } from 'tar-stream';
import { docker } from './docker.js';

/** To the serial line, and then for ever idle: it hears no power button. */
const SAYS_AND_IDLES = 'fa31c08ed8be____baf803fcac08c07403eeebf8f4ebfd';
/** To the serial line, and then off, by the chipset's own register. */
const SAYS_AND_GOES = 'fa31c08ed8be____baf803fcac08c07403eeebf8ba0406b80020eff4ebfd';
/** What the agent makes of the disks in images. */
const PREPARED = 'localhost/gpurent/vm-disk';
const LOADED_AT = 0x7c00;

/** A disk whose boot sector is a whole program: prints `text` to the serial line, and then idles or powers off. */
export function tinyDisk(text: string, end: 'idles' | 'goes'): Buffer {
  const disk = Buffer.alloc(1024 * 1024);
  const code = end === 'idles' ? SAYS_AND_IDLES : SAYS_AND_GOES;
  const message = LOADED_AT + code.length / 2;
  const address = Buffer.from([message & 0xff, message >> 8]).toString('hex');
  disk.write(code.replace('____', address), 'hex');
  disk.write(`${text}\r\n\0`, code.length / 2, 'latin1');
  disk.writeUInt16LE(0xaa55, 510);
  return disk;
}

/** An image that holds exactly these files. */
export async function importImage(name: string, files: Record<string, Buffer>): Promise<string> {
  const packed = pack();
  for (const [path, content] of Object.entries(files)) packed.entry({ name: path }, content);
  packed.finalize();
  const [repo, tag] = name.split(':');
  const archive = Readable.from(packed as AsyncIterable<Buffer>, { objectMode: false });
  const done = await docker.importImage(archive, { repo, tag });
  for await (const _ of done);
  return name;
}

/** Removes images by their names, and what was prepared of the disks in them. */
export async function removeImages(...names: string[]): Promise<void> {
  const prepared = await docker.listImages({ filters: { reference: [PREPARED] } });
  const tags = prepared.flatMap(({ RepoTags }) => RepoTags ?? []);
  for (const name of [...names, ...tags])
    await docker
      .getImage(name)
      .remove({ force: true })
      .catch(() => undefined);
}
