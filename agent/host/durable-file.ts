import { open, rename } from 'node:fs/promises';
import { dirname } from 'node:path';

const UNFINISHED = '.new';

/** Writes a file so that its readers find the old text or the new one, and the same after a crash of the host. */
export async function writeDurably(path: string, text: string, mode: number): Promise<void> {
  const file = await open(path + UNFINISHED, 'w', mode);
  try {
    await file.writeFile(text);
    // Whatever the umask is.
    await file.chmod(mode);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(path + UNFINISHED, path);
  const folder = await open(dirname(path));
  await folder.sync().finally(() => folder.close());
}
