import type { ContainerInspectInfo } from 'dockerode';
import { stat } from 'node:fs/promises';
import type { Logger } from '../../../../shared/logger.js';
import type { Runtime } from '../../workload.js';
import { DEADLINE_MS, statusOf, type Engine } from '../engine.js';
import { ETC_PATHS } from './etc-files.js';
import { containerName } from '../labels.js';

/** Legitimate files of this kind are far smaller. */
const MOST_BYTES = 1024 * 1024;

/**
 * Bounds the files of /etc in containers that an older agent created, which are Docker's: kills a container that has
 * written more than 1 MiB into one of them. Containers of newer agents cannot write to them.
 */
export class EtcBound {
  /** Instances whose containers have our files, and need no further check. */
  private readonly safe = new Set<string>();

  constructor(
    private readonly engine: Engine,
    private readonly runtime: Pick<Runtime, 'list'>,
    private readonly logger: Logger,
  ) {}

  async check(): Promise<void> {
    const listed = await this.runtime.list();
    const ids = new Set(listed.map(({ instanceId }) => instanceId));
    for (const id of this.safe) if (!ids.has(id)) this.safe.delete(id);
    for (const { instanceId, kind, state } of listed) {
      if (kind === 'container' && state === 'running' && !this.safe.has(instanceId)) await this.checkOne(instanceId);
    }
  }

  private async checkOne(instanceId: string): Promise<void> {
    const container = this.engine.docker.getContainer(containerName(instanceId));
    try {
      const info = await this.engine.call('inspect the container', DEADLINE_MS.inspect, () => container.inspect());
      if (hasOurFiles(info)) return void this.safe.add(instanceId);
      const sizes = await Promise.all(dockersFiles(info).map(sizeOf));
      if (Math.max(...sizes) <= MOST_BYTES) return;
      this.logger.error(
        { instanceId },
        'killing a workload that wrote more than 1 MiB to a file of /etc outside of its disk',
      );
      await this.engine.call('kill the container', DEADLINE_MS.inspect, () => container.kill());
    } catch (error) {
      // 404, 409: the container has been removed or has ended meanwhile.
      if (![404, 409].includes(statusOf(error) ?? 0)) throw error;
    }
  }
}

function hasOurFiles({ Mounts }: ContainerInspectInfo): boolean {
  return ETC_PATHS.every((path) => Mounts.some(({ Destination, RW }) => Destination === path && !RW));
}

function dockersFiles({ HostsPath, HostnamePath, ResolvConfPath }: ContainerInspectInfo): string[] {
  return [HostsPath, HostnamePath, ResolvConfPath].filter((path) => path !== '');
}

async function sizeOf(path: string): Promise<number> {
  return stat(path).then(
    ({ size }) => size,
    () => 0,
  );
}
