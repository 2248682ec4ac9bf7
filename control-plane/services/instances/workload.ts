import type { WorkloadSpec } from '../../../shared/gen/gpurent/agent/v1/agent.js';

/** What an instance runs, as it was at deploy: sealed with the instance, opened when a command is sent. */
export type Workload = Omit<WorkloadSpec, 'gpuUuids'>;

export const WORKLOAD_PURPOSE = 'instance.workload';
export const ACCESS_TOKEN_PURPOSE = 'instance.access_token';
