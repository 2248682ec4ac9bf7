import { createHash } from 'node:crypto';
import { createReadStream, readFileSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { SetupError } from '../coded-error.js';
import { checkSignature } from './minisign.js';

/** Where an owner of a machine puts the public key of releases. */
export const RELEASE_KEY = '/etc/gpurent/release.pub';
/** Much more than the checksums of a release take, in bytes. */
export const LONGEST_FILE = 1024 * 1024;

/**
 * Checks that a file of a release is as it was signed: SHA256SUMS and SHA256SUMS.minisig lie beside it. Returns one sentence. Throws a
 * SetupError that says what is wrong and what to do.
 */
export async function verifyRelease(file: string, keyFile: string): Promise<string> {
  const key = read(keyFile, `put the public key of the releases there, or name its file with --key`);
  const folder = dirname(file);
  const sums = read(join(folder, 'SHA256SUMS'), `fetch it from where ${basename(file)} is from`);
  const signature = read(
    join(folder, 'SHA256SUMS.minisig'),
    'fetch it from where SHA256SUMS is from; a build that has none is unsigned: do not install it',
  );
  const comment = checkSignature(sums, signature.toString(), key.toString());
  const name = basename(file);
  const listed = sums
    .toString()
    .split('\n')
    .flatMap((line) => (line.slice(64) === `  ${name}` ? [line.slice(0, 64)] : []));
  const [sum] = listed;
  if (sum === undefined || listed.length > 1)
    throw new SetupError(`SHA256SUMS does not name ${name}: use the name that the release has given it`);
  if ((await sha256Of(file)) !== sum)
    throw new SetupError(`${name} is not the file that was signed: delete it, and fetch it again`);
  return `${name} is as signed (${comment})`;
}

function read(file: string, advice: string): Buffer {
  try {
    const found = statSync(file);
    if (!found.isFile()) throw new SetupError(`${file} is not a file: ${advice}`);
    if (found.size > LONGEST_FILE) throw new SetupError(`${file} is too large: ${advice}`);
    return readFileSync(file);
  } catch (error) {
    if (error instanceof SetupError) throw error;
    throw new SetupError(`${file} cannot be read: ${advice}`, { cause: error });
  }
}

async function sha256Of(file: string): Promise<string> {
  const hash = createHash('sha256');
  try {
    if (!statSync(file).isFile()) throw new Error('it is a folder or a device');
    await pipeline(createReadStream(file), hash);
  } catch (error) {
    throw new SetupError(`${file} cannot be read`, { cause: error });
  }
  return hash.digest('hex');
}
