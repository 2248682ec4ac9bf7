import { hostIds } from '../../../domain/data-root.js';
import { RUNNER_ID } from '../../../domain/virtual-machine.js';
import { dataRootOf } from '../data-root-guard.js';
import type { Engine } from '../engine.js';

/** How a container of the runner's is held to the host's user namespace. */
export interface HostNamespace {
  usernsMode: 'host';
  /** UID:GID */
  user: string;
}

/**
 * Returns what lets QEMU open devices of the host, whose groups have no ids in a remapped user namespace. Its account is the one
 * that Docker has remapped the runner's files to: also in this namespace it is nobody who owns anything of the host.
 */
export async function hostNamespace(engine: Engine): Promise<HostNamespace> {
  const { uid, gid } = hostIds(dataRootOf(await engine.info()), RUNNER_ID);
  return { usernsMode: 'host', user: `${uid}:${gid}` };
}
