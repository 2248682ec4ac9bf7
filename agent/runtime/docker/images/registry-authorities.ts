import { readFile, readdir } from 'node:fs/promises';
import { join } from 'node:path';

/** Folder in which host owners put the certificates of registries' own authorities for Docker. */
export const DOCKER_AUTHORITIES = '/etc/docker/certs.d';
const MOST_BYTES = 1024 * 1024;

/**
 * Returns the certificates (PEM) of authorities that Docker trusts for `HOST[:PORT]` besides this machine's. Like
 * Docker, it reads `FOLDER/HOST[:PORT]/*.crt`.
 */
export async function registryAuthorities(host: string, folder = DOCKER_AUTHORITIES): Promise<string[]> {
  // The folder has the name of a host; any other name has no folder.
  if (!/^[\w.:[\]-]+$/.test(host) || host.startsWith('.')) return [];
  const files = await readdir(join(folder, host)).catch(() => []);
  const found = files.filter((name) => name.endsWith('.crt')).sort();
  const texts = await Promise.all(found.map((name) => readFile(join(folder, host, name), 'utf8').catch(() => '')));
  return texts.filter((text) => text !== '' && text.length <= MOST_BYTES);
}
