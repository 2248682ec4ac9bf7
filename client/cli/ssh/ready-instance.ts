import type { Gpurent, Instance } from '../../api/index.js';
import { findInstance } from '../instances/find.js';
import type { Invocation } from '../invocation/invocation.js';
import { sshTarget, type SshTarget } from './ssh-target.js';

const AGAIN_MS = 1_000;
/** The host key is there a moment after the instance is running, or never. */
const LOOKS = 10;

/** Returns an instance, and how it is reached by SSH; waits up to ten seconds for its host key, without which nothing is verified. */
export async function reach(
  invocation: Invocation,
  gpurent: Gpurent,
  name: string,
): Promise<{ instance: Instance; target: SshTarget }> {
  let instance = await findInstance(gpurent, name);
  let target = sshTarget(instance);
  for (let looks = 1; target.hostKey === null && looks < LOOKS; looks += 1) {
    await invocation.terminal.wait(AGAIN_MS);
    instance = await findInstance(gpurent, instance.id);
    target = sshTarget(instance);
  }
  if (target.hostKey === null)
    invocation.note(
      'The host of this instance cannot tell its SSH host key, so ssh asks you to verify it at the first connection.',
    );
  return { instance, target };
}
