import { chmod, mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Access } from '../../../shared/gen/gpurent/agent/v1/agent.js';
import { shellExports } from '../../domain/shell.js';
import { writeDurably } from '../../host/durable-file.js';
import { InstanceFolders, type BindMount } from './instance-folders.js';

/** Where a container finds what init is to know of its access. */
export const ACCESS_DIR = '/.gpurent-access';
const TOKEN_HASH = 'token-hash';
const GUEST = 'guest';
const FILE_MODE = 0o644;

/**
 * Access that was replaced since a workload was made. It is kept outside of the container, whose labels and environment cannot
 * change and whose files are the renter's; the container sees a part of it, read-only.
 */
export class AccessFiles extends InstanceFolders {
  /** Makes what an instance's container is given. */
  async provide(instanceId: string): Promise<BindMount> {
    const guest = join(this.folderOf(instanceId), GUEST);
    await mkdir(guest, { recursive: true });
    // Whatever the umask is.
    await chmod(guest, 0o755);
    return { Type: 'bind', Source: guest, Target: ACCESS_DIR, ReadOnly: true };
  }

  /** From now on this is what counts, also after a crash of the host. */
  async replace(instanceId: string, { tokenHash, sshAuthorizedKey, env }: Access): Promise<void> {
    const { Source: guest } = await this.provide(instanceId);
    await writeDurably(join(guest, 'env'), shellExports(env), FILE_MODE);
    // Without one in its place the key that is there stays.
    if (sshAuthorizedKey !== '') await writeDurably(join(guest, 'authorized_key'), `${sshAuthorizedKey}\n`, FILE_MODE);
    await writeDurably(join(this.folderOf(instanceId), TOKEN_HASH), tokenHash, FILE_MODE);
  }

  /** Of the token that has replaced the workload's first one; undefined where none has. */
  async tokenHashOf(instanceId: string): Promise<string | undefined> {
    return readFile(join(this.folderOf(instanceId), TOKEN_HASH), 'utf8').catch((error: unknown) => {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
      throw error;
    });
  }
}
