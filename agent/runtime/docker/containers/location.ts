import type { ContainerInspectInfo } from 'dockerode';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { LocatedWorkload, Workload } from '../../workload.js';
import { SSH_CONTAINER_PORT } from './container-options.js';
import type { Engine } from '../engine.js';

/** The name of a folder that Docker has made for a container. */
const FOLDER_NAME = /^[\w-]{1,128}$/;

/** Returns where the host can find out what a running workload uses; undefined if it has no process any more. */
export async function locationOf(
  engine: Engine,
  info: ContainerInspectInfo,
  workload: Extract<Workload, { state: 'running' }>,
  hasDiskQuota: boolean,
): Promise<LocatedWorkload | undefined> {
  const { Id, State } = info;
  if (State.Pid <= 0) return undefined;
  const sshContainerPort = workload.sshPort === null ? null : SSH_CONTAINER_PORT;
  // Only a quota makes the file system keep an account of what one container has written.
  const disk = hasDiskQuota ? await diskOf(engine, info) : null;
  return { workload, pid: State.Pid, containerId: Id, sshContainerPort, disk };
}

/** What Docker says of a container's storage; Docker with containerd's image store says nothing. */
interface Storage {
  Id: string;
  GraphDriver?: { Name: string; Data: object | null };
}

async function diskOf(engine: Engine, { Id, GraphDriver }: Storage): Promise<LocatedWorkload['disk']> {
  const { Name, Data } = GraphDriver ?? {};
  if (Name === 'overlay2') {
    const { UpperDir } = (Data ?? {}) as { UpperDir?: string };
    return UpperDir === undefined ? null : { driver: Name, path: UpperDir };
  }
  if (Name !== 'btrfs') return null;
  const { DockerRootDir } = await engine.recentInfo();
  const mount = await readFile(
    join(DockerRootDir, 'image', 'btrfs', 'layerdb', 'mounts', Id, 'mount-id'),
    'utf8',
  ).catch(() => '');
  return FOLDER_NAME.test(mount) ? { driver: Name, path: join(DockerRootDir, 'btrfs', 'subvolumes', mount) } : null;
}
