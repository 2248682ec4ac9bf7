import { chmod, mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Access } from '../../../../shared/gen/gpurent/agent/v1/agent.js';
import { shellExports } from '../../../domain/shell.js';
import { writeDurably } from '../../../host/durable-file.js';
import { InstanceFolders, type BindMount } from './instance-folders.js';

/** The folder in a container where init reads the replaced access. */
export const ACCESS_DIR = '/.gpurent-access';
const TOKEN_HASH = 'token-hash';
const GUEST = 'guest';
const FILE_MODE = 0o644;

/**
 * Stores the access that has replaced the original access of a workload. It is kept outside of the container, because a
 * container's labels and environment cannot change and its files belong to the renter. The container sees a part of it,
 * read-only.
 */
export class AccessFiles extends InstanceFolders {
  /** Creates the folder that the instance's container sees, and returns its mount. */
  async provide(instanceId: string): Promise<BindMount> {
    const guest = join(this.folderOf(instanceId), GUEST);
    await mkdir(guest, { recursive: true });
    // Independent of the umask.
    await chmod(guest, 0o755);
    return { Type: 'bind', Source: guest, Target: ACCESS_DIR, ReadOnly: true };
  }

  /** Stores the new access durably: it applies from now on, also after a crash of the host. */
  async replace(instanceId: string, { tokenHash, sshAuthorizedKey, env }: Access): Promise<void> {
    const { Source: guest } = await this.provide(instanceId);
    await writeDurably(join(guest, 'env'), shellExports(env), FILE_MODE);
    // Without a new key, the old one stays.
    if (sshAuthorizedKey !== '') await writeDurably(join(guest, 'authorized_key'), `${sshAuthorizedKey}\n`, FILE_MODE);
    await writeDurably(join(this.folderOf(instanceId), TOKEN_HASH), tokenHash, FILE_MODE);
  }

  /** Returns the SHA-256 of the token that has replaced the workload's first one; undefined if none has. */
  async tokenHashOf(instanceId: string): Promise<string | undefined> {
    return readFile(join(this.folderOf(instanceId), TOKEN_HASH), 'utf8').catch((error: unknown) => {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
      throw error;
    });
  }
}
