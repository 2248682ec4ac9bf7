import { hostIds } from '../../../domain/data-root.js';
import { RUNNER_ID } from '../../../domain/virtual-machine.js';
import { dataRootOf } from '../data-roots/data-root-guard.js';
import type { Engine } from '../engine.js';

/** Options that run a container of the runner in the host's user namespace. */
export interface HostNamespace {
  usernsMode: 'host';
  /** UID:GID */
  user: string;
}

/**
 * Returns the options with which QEMU can open devices of the host, whose groups have no ids in a remapped user
 * namespace. QEMU's account is the one to which Docker has remapped the runner's files, which owns nothing else of the
 * host.
 */
export async function hostNamespace(engine: Engine): Promise<HostNamespace> {
  const { uid, gid } = hostIds(dataRootOf(await engine.info()), RUNNER_ID);
  return { usernsMode: 'host', user: `${uid}:${gid}` };
}
