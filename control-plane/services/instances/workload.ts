import { WorkloadSpec } from '../../../shared/gen/gpurent/agent/v1/agent.js';
import type { Encryption } from '../secrets/encryption.js';

/** What an instance runs, as it was at deploy: sealed with the instance, opened when a command is sent. */
export type Workload = Omit<WorkloadSpec, 'gpuUuids' | 'origin'>;

export function encryptWorkload(encryption: Encryption, workload: Workload): Buffer {
  return encryption.encrypt('instance.workload', workload);
}

/** With the wire's defaults for what a release that did not know a field has sealed without it. */
export function decryptWorkload(encryption: Encryption, sealed: Buffer): Workload {
  return WorkloadSpec.fromPartial(encryption.decrypt('instance.workload', sealed) as Partial<WorkloadSpec>);
}
