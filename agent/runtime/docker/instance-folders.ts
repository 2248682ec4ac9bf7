import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';

export interface BindMount {
  Type: 'bind';
  Source: string;
  Target: string;
  ReadOnly: boolean;
}

/** A folder for each instance, for what is kept of it outside of its container. */
export class InstanceFolders {
  /** `folder`: of this host's; the agent alone writes to it. */
  constructor(private readonly folder: string) {}

  async remove(instanceId: string): Promise<void> {
    await rm(this.folderOf(instanceId), { recursive: true, force: true });
  }

  /** Removes the folders of all instances but these. */
  async prune(kept: ReadonlySet<string>): Promise<void> {
    const present = await readdir(this.folder).catch(() => []);
    for (const instanceId of present) if (!kept.has(instanceId)) await this.remove(instanceId);
  }

  protected folderOf(instanceId: string): string {
    return join(this.folder, instanceId);
  }
}
