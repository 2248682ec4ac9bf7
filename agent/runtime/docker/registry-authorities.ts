import { readFile, readdir } from 'node:fs/promises';
import { join } from 'node:path';

/** Where Docker's owner puts the certificates of registries' own authorities. */
export const DOCKER_AUTHORITIES = '/etc/docker/certs.d';
const MOST_BYTES = 1024 * 1024;

/** Certificates, in PEM, that vouch for `HOST[:PORT]` beside this machine's, as Docker finds them: `FOLDER/HOST[:PORT]/*.crt`. */
export async function registryAuthorities(host: string, folder = DOCKER_AUTHORITIES): Promise<string[]> {
  // Docker's own name of such a folder; what is none of a host, is none of a folder either.
  if (!/^[\w.:[\]-]+$/.test(host) || host.startsWith('.')) return [];
  const files = await readdir(join(folder, host)).catch(() => []);
  const found = files.filter((name) => name.endsWith('.crt')).sort();
  const texts = await Promise.all(found.map((name) => readFile(join(folder, host, name), 'utf8').catch(() => '')));
  return texts.filter((text) => text !== '' && text.length <= MOST_BYTES);
}
