import { WorkloadSpec } from '../../../shared/gen/gpurent/agent/v1/agent.js';
import type { Encryption } from '../secrets/encryption.js';

/** What an instance runs, fixed at its deploy. It is stored encrypted, and decrypted when a command is sent. */
export type Workload = Omit<WorkloadSpec, 'gpuUuids' | 'origin'>;

export function encryptWorkload(encryption: Encryption, workload: Workload): Buffer {
  return encryption.encrypt('instance.workload', workload);
}

/** Decrypts a workload. Fields that an older release did not store get the defaults of the protocol. */
export function decryptWorkload(encryption: Encryption, sealed: Buffer): Workload {
  return WorkloadSpec.fromPartial(encryption.decrypt('instance.workload', sealed) as Partial<WorkloadSpec>);
}
