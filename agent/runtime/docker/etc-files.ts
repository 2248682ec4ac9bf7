import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { InstanceFolders, type BindMount } from './instance-folders.js';

/** Docker's own name server in a network of ours; it passes on to those that the container was made with. */
const RESOLV_CONF = 'nameserver 127.0.0.11\noptions ndots:0\n';
const FILES = ['hosts', 'hostname', 'resolv.conf'] as const;

/** Where these files are in a container. */
export const ETC_PATHS: readonly string[] = FILES.map((name) => `/etc/${name}`);

/**
 * The files of /etc that Docker keeps for each container outside of its disk, where no size holds and root in the container may
 * write. Ours take their places, read-only.
 */
export class EtcFiles extends InstanceFolders {
  /** Writes the files of an instance, also over older ones. Returns the mounts that put them into its container. */
  async provide(instanceId: string): Promise<BindMount[]> {
    const own = this.folderOf(instanceId);
    await mkdir(own, { recursive: true });
    const hostname = hostnameOf(instanceId);
    const contents = {
      hosts: `127.0.0.1\tlocalhost\n127.0.1.1\t${hostname}\n::1\tlocalhost ip6-localhost ip6-loopback\n`,
      hostname: `${hostname}\n`,
      'resolv.conf': RESOLV_CONF,
    };
    for (const name of FILES) {
      await writeFile(join(own, name), contents[name]);
      // Whatever the umask is: every user of the container reads them.
      await chmod(join(own, name), 0o644);
    }
    return FILES.map((name) => ({ Type: 'bind', Source: join(own, name), Target: `/etc/${name}`, ReadOnly: true }));
  }
}

/** What a container calls itself. */
export function hostnameOf(instanceId: string): string {
  return instanceId.slice(0, 8);
}
