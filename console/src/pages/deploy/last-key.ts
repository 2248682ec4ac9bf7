import type { SshKey } from '../../data/api/models.js';

const KEY = 'gpurent.ssh-key';

/** Returns the id of the SSH key of the last deploy, or of the newest one; empty: there is none. */
export function lastKey(keys: readonly SshKey[]): string {
  const last = localStorage.getItem(KEY);
  const known = keys.find(({ id }) => id === last);
  return known?.id ?? [...keys].sort((a, b) => b.created_at.localeCompare(a.created_at))[0]?.id ?? '';
}

/** Keeps the key of a deploy for the next one. */
export function keepKey(id: string | null | undefined): void {
  if (id) localStorage.setItem(KEY, id);
}
