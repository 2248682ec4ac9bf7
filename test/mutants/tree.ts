import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Made by the build, and needed by the tests. */
const GENERATED = 'shared/gen';

/**
 * Copies the sources of the working tree at `root`, as they are, to a folder in which faults may be put into them. Whatever ends
 * the process, the working tree stays as it was.
 */
export function copySources(root: string): { folder: string; remove: () => void } {
  const folder = mkdtempSync(join(tmpdir(), 'gpurent-mutants-'));
  const list = ['ls-files', '-z', '--cached', '--others', '--exclude-standard'];
  const listed = execFileSync('git', list, { cwd: root, encoding: 'utf8' }).split('\0');
  for (const file of [...listed, GENERATED]) {
    // Git also lists what was removed and is not committed yet.
    if (file !== '' && existsSync(join(root, file))) cpSync(join(root, file), join(folder, file), { recursive: true });
  }
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
  return { folder, remove: () => rmSync(folder, { recursive: true, force: true, maxRetries: 10 }) };
}
