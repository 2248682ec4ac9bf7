import { status } from '@grpc/grpc-js';
import { open, type FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import { sleep, type Clock, type Timer } from '../../shared/clock.js';
import { CodedError } from '../../shared/coded-error.js';
import { fileTroubleOf } from '../../shared/file-access.js';
import { ReleaseFile } from '../../shared/gen/gpurent/agent/v1/agent.js';
import { tarballOf } from '../../shared/release/newer.js';
import { LONGEST_FILE } from '../../shared/release/verify.js';
import { HOUR_MS } from '../../shared/time.js';
import { MOST_BYTES, announcementFault, roomFault } from '../domain/upgrade.js';
import { advisedDelayMs, retryDelayMs } from '../link/backoff.js';
import type { OpenRelease } from '../link/dial.js';
import { advisedMsOf, linkFailureOf } from '../link/failure.js';

/** For how long a control plane can send nothing. */
const SILENT_MS = 30_000;
/** How long all files together can take, waits included. */
const LONGEST_MS = 2 * HOUR_MS;
/** How often a connection can be lost during one upgrade. */
const MOST_LOSSES = 20;
/** How long to wait at least where the control plane says that too many hosts load the release. */
const CROWDED_MS = 15_000;
const MOST_BYTES_OF_MESSAGE = 64 * 1024;
/** What stays the same if the agent asks again. */
const FINAL: ReadonlySet<unknown> = new Set([
  status.NOT_FOUND,
  status.UNIMPLEMENTED,
  status.PERMISSION_DENIED,
  status.UNAUTHENTICATED,
  status.FAILED_PRECONDITION,
  status.INVALID_ARGUMENT,
  status.OUT_OF_RANGE,
]);

/** Why an upgrade has failed. */
export class UpgradeFault extends CodedError<'UPGRADE'> {
  constructor(message: string, options?: ErrorOptions) {
    super('UPGRADE', message, options);
  }
}

export interface LoaderParts {
  open: OpenRelease;
  clock: Clock;
  /** In [0, 1). */
  random: () => number;
  /** Returns how many bytes are free on the disk of a folder. */
  freeBytes: (folder: string) => Promise<number>;
}

/** A file that is being loaded. */
interface Wanted {
  file: ReleaseFile;
  name: string;
  /** How large it can be. */
  mostBytes: number;
}

/** Loads one release. */
export class ReleaseLoader {
  private losses = 0;

  constructor(
    private readonly parts: LoaderParts,
    private readonly folder: string,
    private readonly signal: AbortSignal,
  ) {}

  /** Returns the path of the tarball; SHA256SUMS and its signature lie beside it. Rejects with UpgradeFault, or if `signal` is aborted. */
  async load(version: string): Promise<string> {
    const ending = new AbortController();
    const late = () => ending.abort(new UpgradeFault('the release could not be loaded within two hours'));
    const timer = this.parts.clock.schedule(LONGEST_MS, late);
    const signal = AbortSignal.any([this.signal, ending.signal]);
    const name = tarballOf(version);
    try {
      // The small ones first, so that little is loaded of what no release has.
      const small = { mostBytes: LONGEST_FILE };
      const sums = await this.file({ ...small, file: ReleaseFile.RELEASE_FILE_SUMS, name: 'SHA256SUMS' }, signal);
      const signature = await this.file(
        { ...small, file: ReleaseFile.RELEASE_FILE_SIGNATURE, name: 'SHA256SUMS.minisig' },
        signal,
      );
      const mostBytes = MOST_BYTES - sums - signature;
      await this.file({ file: ReleaseFile.RELEASE_FILE_TARBALL, name, mostBytes }, signal);
      return join(this.folder, name);
    } finally {
      timer.cancel();
    }
  }

  /** Loads a file, however often its connection is lost within the limits. Returns its size. */
  private async file(wanted: Wanted, signal: AbortSignal): Promise<number> {
    const { clock } = this.parts;
    const handle = await this.onDisk(() => open(join(this.folder, wanted.name), 'wx', 0o600));
    let loaded = 0;
    const write = async (data: Buffer) => {
      await this.onDisk(() => writeWhole(handle, data));
      loaded += data.length;
    };
    try {
      for (;;) {
        signal.throwIfAborted();
        try {
          await this.attempt(wanted, loaded, write, signal);
          await this.onDisk(() => handle.sync());
          return loaded;
        } catch (error) {
          signal.throwIfAborted();
          await sleep(clock, this.delayAfter(error), signal);
        }
      }
    } finally {
      await handle.close();
    }
  }

  /** Asks once for what follows after `loaded` bytes. Resolves once the file is whole. */
  private async attempt(
    { file, name, mostBytes }: Wanted,
    loaded: number,
    write: (data: Buffer) => Promise<void>,
    signal: AbortSignal,
  ): Promise<void> {
    const { clock, freeBytes } = this.parts;
    const stream = this.parts.open(file, loaded);
    // The library reports a cancelled stream by an event that nobody may be waiting for.
    stream.on('error', () => undefined);
    const cancel = () => stream.cancel();
    signal.addEventListener('abort', cancel, { once: true });
    const silence: { timer?: Timer; isOver: boolean } = { isOver: false };
    const giveUp = () => {
      silence.isOver = true;
      stream.cancel();
    };
    const listen = () => {
      silence.timer?.cancel();
      silence.timer = clock.schedule(SILENT_MS, giveUp);
    };
    listen();
    let size: number | undefined;
    let reached = loaded;
    try {
      for await (const { name: saidName, size: saidSize, data } of stream) {
        if (size === undefined) {
          const announced = { name: saidName, size: saidSize };
          refuse(announcementFault(announced, { name, mostBytes, loadedBytes: loaded }));
          refuse(roomFault(await this.onDisk(() => freeBytes(this.folder)), saidSize - loaded));
          size = saidSize;
        } else if (data.length === 0)
          throw new UpgradeFault(`the control plane sends messages of ${name} without content`);
        reached += data.length;
        refuse(contentFault(name, data.length, reached, size));
        await write(data);
        listen();
      }
    } catch (error) {
      if (silence.isOver)
        throw new Error(`the control plane has sent nothing of ${name} for 30 seconds`, { cause: error });
      throw error;
    } finally {
      silence.timer?.cancel();
      signal.removeEventListener('abort', cancel);
      stream.cancel();
    }
    if (reached !== size) throw new Error(`the control plane has ended ${name} early`);
  }

  /** Returns how long to wait before the next attempt. Throws UpgradeFault if there is none. */
  private delayAfter(error: unknown): number {
    if (error instanceof UpgradeFault) throw error;
    const { random } = this.parts;
    const { code } = error as { code?: unknown };
    const { reason } = linkFailureOf(error);
    if (FINAL.has(code)) throw new UpgradeFault(`the control plane gives no release: ${reason}`, { cause: error });
    if (code === status.RESOURCE_EXHAUSTED) return advisedDelayMs(Math.max(advisedMsOf(error), CROWDED_MS), random());
    this.losses += 1;
    if (this.losses > MOST_LOSSES)
      throw new UpgradeFault(`the connection was lost ${this.losses} times while the release was loaded: ${reason}`, {
        cause: error,
      });
    return retryDelayMs(this.losses, random());
  }

  /** Throws UpgradeFault where the disk refuses something. */
  private async onDisk<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      throw new UpgradeFault(`the release cannot be stored: ${fileTroubleOf(error)}`, { cause: error });
    }
  }
}

/** Returns why a message of `bytes` bytes, after which `reached` of the `size` bytes of a file are here, is not taken; undefined: it is. */
function contentFault(name: string, bytes: number, reached: number, size: number): string | undefined {
  if (bytes > MOST_BYTES_OF_MESSAGE) return `the control plane sends too much of ${name} in one message`;
  if (reached > size) return `the control plane sends more of ${name} than the ${size} bytes that it has announced`;
  return undefined;
}

function refuse(fault: string | undefined): void {
  if (fault !== undefined) throw new UpgradeFault(fault);
}

async function writeWhole(handle: FileHandle, data: Buffer): Promise<void> {
  for (let written = 0; written < data.length;) written += (await handle.write(data, written)).bytesWritten;
}
