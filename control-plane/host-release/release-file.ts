import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { basename, dirname, resolve } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { Downloads } from './downloads.js';

/** A release of the agent, as it lies on the disk now. */
export interface Release {
  /** The name of the tarball, such as `gpurent-0.3.0-linux-x64.tar.gz`. */
  name: string;
  folder: string;
  /** In hex. */
  sha256: string;
}

/** Reads the tarball that hosts are given. An operator can replace it at any time: it is looked at for each request. */
export class ReleaseFile {
  readonly downloads: Downloads;
  private known: { state: string; release: Promise<Release> } | undefined;
  private readonly path: string;

  constructor(path: string, downloads = new Downloads()) {
    this.path = resolve(path);
    this.downloads = downloads;
  }

  /** Returns the release. Its checksum is read once for each state of the file. Rejects with the error of the file system. */
  async read(): Promise<Release> {
    const { size, mtimeMs, ino } = await stat(this.path);
    const state = `${size} ${mtimeMs} ${ino}`;
    if (this.known?.state !== state) this.known = { state, release: this.summed() };
    return this.known.release.catch((error: unknown) => {
      this.known = undefined;
      throw error;
    });
  }

  private async summed(): Promise<Release> {
    const hash = createHash('sha256');
    await pipeline(createReadStream(this.path), hash);
    return { name: basename(this.path), folder: dirname(this.path), sha256: hash.digest('hex') };
  }
}
