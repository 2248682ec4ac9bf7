import type { Gpurent, Instance } from '../../api/index.js';
import type { Invocation } from '../invocation/invocation.js';
import { findInstance, nameOf } from './find.js';
import { followUntil, newestEvent } from './follow.js';

/** Has an instance changed, waits until it has this status if asked for, and writes it. */
export async function act(
  invocation: Invocation,
  name: string,
  status: Instance['status'],
  wait: true | undefined,
  change: (gpurent: Gpurent, id: string) => Promise<Instance>,
): Promise<void> {
  const gpurent = invocation.gpurent();
  const { id } = await findInstance(gpurent, name);
  const after = wait && (await newestEvent(gpurent));
  const changed = await change(gpurent, id);
  const instance = wait ? await followUntil(gpurent, invocation.terminal, changed, status, after) : changed;
  invocation.object(instance, () => [`${nameOf(instance)} is ${instance.status}`]);
}
