import { status, type ServerWritableStream } from '@grpc/grpc-js';
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { Transform, pipeline, type Writable } from 'node:stream';
import { messageOf } from '../../shared/coded-error.js';
import { ReleaseFile as Wanted } from '../../shared/gen/gpurent/agent/v1/agent.js';
import type { LoadReleaseRequest, LoadReleaseResponse } from '../../shared/gen/gpurent/agent/v1/agent.js';
import { Refusal } from '../domain/refusal.js';
import type { ReleaseFile } from '../host-release/release-file.js';
import { admitHost, type Proof } from '../services/machines/credentials.js';
import type { App } from '../services/parts/parts.js';

const CHUNK_BYTES = 64 * 1024;

type Call = ServerWritableStream<LoadReleaseRequest, LoadReleaseResponse>;

/**
 * Gives a host a file of the release, from the byte on that it asks for. Only hosts that could connect get one. Calls `onProven` once the
 * host has proved who it is.
 */
export function loadRelease(
  platform: App,
  release: ReleaseFile | undefined,
  proof: Proof,
  call: Call,
  onProven: () => void,
): void {
  give(platform, release, proof, call, onProven).catch((error: unknown) => {
    const [code, details] = errorOf(error);
    call.emit('error', Object.assign(new Error(details), { code, details }));
  });
}

async function give(
  platform: App,
  release: ReleaseFile | undefined,
  proof: Proof,
  call: Call,
  onProven: () => void,
): Promise<void> {
  const machineId = admitHost(platform, proof);
  onProven();
  if (!release) throw new NoFile('this control plane has no release for hosts');
  const { name, path } = await fileOf(release, call.request.file);
  const { size } = await stat(path);
  const { offset } = call.request;
  if (offset > size) throw new NoFile(`${name} has ${size} bytes, fewer than this host has`);
  const { stream } = await release.downloads.open(machineId, () =>
    Promise.resolve({ stream: createReadStream(path, { start: offset, highWaterMark: CHUNK_BYTES }) }),
  );
  // It waits while the host reads slower than the disk.
  const toMessages = new Transform({
    objectMode: true,
    transform: (data: Buffer, _encoding, done) => done(null, { name: '', size: 0, data }),
  });
  call.write({ name, size, data: Buffer.alloc(0) });
  call.on('cancelled', () => stream.destroy());
  pipeline(stream, toMessages, call as unknown as Writable, () => stream.destroy());
}

/** There is no such file, or nothing of it that the host lacks. */
class NoFile extends Error {}

async function fileOf(release: ReleaseFile, wanted: Wanted): Promise<{ name: string; path: string }> {
  const { name: tarball, folder } = await release.read().catch(() => {
    throw new NoFile('the release that GPURENT_HOST_RELEASE names cannot be read');
  });
  const names: Partial<Record<Wanted, string>> = {
    [Wanted.RELEASE_FILE_TARBALL]: tarball,
    [Wanted.RELEASE_FILE_SUMS]: 'SHA256SUMS',
    [Wanted.RELEASE_FILE_SIGNATURE]: 'SHA256SUMS.minisig',
  };
  const name = names[wanted];
  if (name === undefined) throw new NoFile('a release has no such file');
  return { name, path: join(folder, name) };
}

function errorOf(error: unknown): [status, string] {
  if (error instanceof NoFile) return [status.NOT_FOUND, error.message];
  if (error instanceof Refusal) {
    const isFull = error.code === 'UNAVAILABLE';
    return [isFull ? status.RESOURCE_EXHAUSTED : status.UNAUTHENTICATED, error.message];
  }
  const isMissing = (error as NodeJS.ErrnoException).code === 'ENOENT';
  return isMissing ? [status.NOT_FOUND, 'the release lacks this file'] : [status.INTERNAL, messageOf(error)];
}
