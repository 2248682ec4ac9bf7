import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { InstanceFolders, type BindMount } from './instance-folders.js';

/** Docker's own name server in our networks; it forwards to the resolvers that the container was created with. */
const RESOLV_CONF = 'nameserver 127.0.0.11\noptions ndots:0\n';
const FILES = ['hosts', 'hostname', 'resolv.conf'] as const;

/** Paths of these files in a container. */
export const ETC_PATHS: readonly string[] = FILES.map((name) => `/etc/${name}`);

/**
 * Replaces the files of /etc that Docker keeps for each container outside of its disk, where no size limit holds and
 * root in the container can write. Ours are mounted over them, read-only.
 */
export class EtcFiles extends InstanceFolders {
  /** Writes the files of an instance, replacing older ones. Returns the mounts that put them into its container. */
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
      // Every user of the container reads them, whatever the umask is.
      await chmod(join(own, name), 0o644);
    }
    return FILES.map((name) => ({ Type: 'bind', Source: join(own, name), Target: `/etc/${name}`, ReadOnly: true }));
  }
}

/** Returns the host name of an instance's container. */
export function hostnameOf(instanceId: string): string {
  return instanceId.slice(0, 8);
}
