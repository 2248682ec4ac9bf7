export const INSTANCE_STATUSES = [
  'creating',
  'starting',
  'running',
  'stopping',
  'stopped',
  'destroying',
  'destroyed',
  'error',
] as const;
export type InstanceStatus = (typeof INSTANCE_STATUSES)[number];

export const INSTANCE_ACTIONS = ['start', 'stop', 'destroy'] as const;
export type InstanceAction = (typeof INSTANCE_ACTIONS)[number];

/** The values of the field `gpu_release` (API rule 45): how far the release of a stopped instance's GPUs is. */
export const GPU_RELEASES = ['pending', 'released', 'unsupported'] as const;
export type GpuRelease = (typeof GPU_RELEASES)[number];

/**
 * Every allowed change of a status. All code that writes a status goes through {@link assertTransition}.
 *
 *   creating ──> running <──> stopping ──> stopped <──> starting
 *      │           │  ^                                    │
 *      │           │  └────────────────────────────────────┘
 *      └──> error <┘         any but destroyed ──> destroying ──> destroyed
 */
const EDGES: Readonly<Record<InstanceStatus, readonly InstanceStatus[]>> = {
  creating: ['running', 'error', 'destroying'],
  starting: ['running', 'stopped', 'destroying'],
  running: ['stopping', 'error', 'destroying'],
  stopping: ['stopped', 'running', 'destroying'],
  stopped: ['starting', 'destroying'],
  error: ['destroying'],
  destroying: ['destroyed'],
  destroyed: [],
};

/** The actions that the API accepts in each status (API rule 26). */
const ACTIONS: Readonly<Record<InstanceStatus, readonly InstanceAction[]>> = {
  creating: ['destroy'],
  starting: ['destroy'],
  running: ['stop', 'destroy'],
  stopping: ['destroy'],
  stopped: ['start', 'destroy'],
  destroying: ['destroy'],
  destroyed: [],
  error: ['destroy'],
};

export function allowedActions(status: InstanceStatus): readonly InstanceAction[] {
  return ACTIONS[status];
}

/** Throws an Error if the status must not change so: a bug in the control plane, never a renter's mistake. */
export function assertTransition(from: InstanceStatus, to: InstanceStatus): void {
  if (!EDGES[from].includes(to)) throw new Error(`no transition from ${from} to ${to}`);
}

/** Returns whether the workload can be up in this status, so that the API shows its addresses. */
export function isUp(status: InstanceStatus): boolean {
  return status === 'running' || status === 'stopping';
}
