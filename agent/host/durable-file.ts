import { open, rename } from 'node:fs/promises';
import { dirname } from 'node:path';

const UNFINISHED = '.new';

/** Replaces a file atomically: readers see the old or the new text, also after a crash of the host. */
export async function writeDurably(path: string, text: string, mode: number): Promise<void> {
  const file = await open(path + UNFINISHED, 'w', mode);
  try {
    await file.writeFile(text);
    // `open` applies the umask to the mode; this does not.
    await file.chmod(mode);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(path + UNFINISHED, path);
  const folder = await open(dirname(path));
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}
