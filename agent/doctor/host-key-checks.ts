import { messageOf } from '../../shared/coded-error.js';
import type { HostKeys } from '../host/network/ssh-host-key.js';
import { doubtful, good, type Check, type Finding } from './finding.js';
import type { AskDaemon } from './link-checks.js';

/**
 * Returns the check whether SSH host keys of instances can be read. `gpurent-agent doctor` has all rights of root, and the agent only those
 * of its unit: so the check also asks the agent.
 */
export function hostKeyChecks(hostKeys: Pick<HostKeys, 'check'>, ask: AskDaemon): Check[] {
  return [{ name: 'SSH host keys', look: async () => [await checkHostKeys(hostKeys, ask)] }];
}

async function checkHostKeys(hostKeys: Pick<HostKeys, 'check'>, ask: AskDaemon): Promise<Finding> {
  const fault = await faultOf(hostKeys, ask);
  if (fault === '') return good('can be read, by an account without rights');
  return doubtful(
    `of instances cannot be read, so renters cannot verify their first connection: ${fault}`,
    'install ssh-keyscan (Debian’s package openssh-client); the unit gpurent-agent needs CAP_SETUID and CAP_SETGID in its CapabilityBoundingSet: run scripts/install-agent, which brings the unit; then restart the agent',
  );
}

async function faultOf(hostKeys: Pick<HostKeys, 'check'>, ask: AskDaemon): Promise<string> {
  try {
    await hostKeys.check();
  } catch (error) {
    return messageOf(error);
  }
  const { hostKeyFault = '' } = await ask().catch(() => ({ hostKeyFault: '' }));
  return hostKeyFault;
}
