import { WorkloadSpec } from '../../../shared/gen/gpurent/agent/v1/agent.js';
import type { Sealer } from '../secrets/encryption.js';

/** What an instance runs, as it was at deploy: sealed with the instance, opened when a command is sent. */
export type Workload = Omit<WorkloadSpec, 'gpuUuids' | 'origin'>;

export function sealWorkload(sealer: Sealer, workload: Workload): Buffer {
  return sealer.seal('instance.workload', workload);
}

/** With the wire's defaults for what a release that did not know a field has sealed without it. */
export function openWorkload(sealer: Sealer, sealed: Buffer): Workload {
  return WorkloadSpec.fromPartial(sealer.open('instance.workload', sealed) as Partial<WorkloadSpec>);
}
