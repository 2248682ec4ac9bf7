import { WorkloadSpec } from '../../../shared/gen/gpurent/agent/v1/agent.js';
import type { Sealer } from '../sealer.js';

/** What an instance runs, as it was at deploy: sealed with the instance, opened when a command is sent. */
export type Workload = Omit<WorkloadSpec, 'gpuUuids' | 'origin'>;

export const WORKLOAD_PURPOSE = 'instance.workload';
export const ACCESS_TOKEN_PURPOSE = 'instance.access_token';

export function sealWorkload(sealer: Sealer, workload: Workload): Buffer {
  return sealer.seal(WORKLOAD_PURPOSE, workload);
}

/** With the wire's defaults for what a release that did not know a field has sealed without it. */
export function openWorkload(sealer: Sealer, sealed: Buffer): Workload {
  return WorkloadSpec.fromPartial(sealer.open(WORKLOAD_PURPOSE, sealed) as Partial<WorkloadSpec>);
}
