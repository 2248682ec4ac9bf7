import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';

export interface BindMount {
  Type: 'bind';
  Source: string;
  Target: string;
  ReadOnly: boolean;
}

/** Keeps a folder for each instance, for its files outside of its container. */
export class InstanceFolders {
  /** `folder`: holds the folders of this host's instances; only the agent writes to it. */
  constructor(private readonly folder: string) {}

  async remove(instanceId: string): Promise<void> {
    await rm(this.folderOf(instanceId), { recursive: true, force: true });
  }

  /** Removes the folders of all instances that are not in `kept`. */
  async prune(kept: ReadonlySet<string>): Promise<void> {
    const present = await readdir(this.folder).catch(() => []);
    for (const instanceId of present) if (!kept.has(instanceId)) await this.remove(instanceId);
  }

  protected folderOf(instanceId: string): string {
    return join(this.folder, instanceId);
  }
}
