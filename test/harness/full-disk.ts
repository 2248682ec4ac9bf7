import { vi } from 'vitest';
import type { Journal } from '../../agent/journal/journal.js';
import type { ControlPlane } from '../../control-plane/app.js';

/** The disk of a journal takes no writes until the function answered is called. */
export function refuseWrites(journal: Journal): () => void {
  const disk = journal['storage']['disk'];
  disk.pragma('query_only = ON');
  return () => void disk.pragma('query_only = OFF');
}

/** The disk of the database counts as full until the function answered is called. */
export function pretendFull({ platform: { room } }: Pick<ControlPlane, 'platform'>): () => void {
  const full = vi.spyOn(room, 'isFull', 'get').mockReturnValue(true);
  return () => full.mockRestore();
}
