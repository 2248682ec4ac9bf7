import type { Journal } from '../../agent/journal/journal.js';

/** The disk of a journal takes no writes until the function answered is called. */
export function refuseWrites(journal: Journal): () => void {
  const disk = journal['storage']['disk'];
  disk.pragma('query_only = ON');
  return () => void disk.pragma('query_only = OFF');
}
