/** The values of `error_code`, for renters to act upon: why an instance is in `error`, or why its stop or start failed. */
export const INSTANCE_ERRORS = [
  'disk_gone',
  'gpus_unavailable',
  'provision_failed',
  'start_failed',
  'start_timed_out',
  'stop_timed_out',
  'workload_completed',
  'workload_failed',
  'workload_lost',
] as const;
export type InstanceErrorCode = (typeof INSTANCE_ERRORS)[number];

/** The kinds of events that the control plane writes into the timeline of an instance, besides {@link INSTANCE_ERRORS}. */
export const PLATFORM_EVENTS = [
  'access_refused',
  'access_replaced',
  'access_requested',
  'adopted',
  'charge_limit',
  'charge_limit_reached',
  'cleaned_up',
  'created',
  'destroy_delayed',
  'destroy_requested',
  'destroy_scheduled',
  'destroy_soon',
  'destroyed',
  'disk_back',
  'disk_filling',
  'docker_down',
  'error_expired',
  'gpu_healthy',
  'gpu_unhealthy',
  'gpus_released',
  'host_away',
  'idle',
  'idle_stop',
  'machine_cordoned',
  'member_demoted',
  'member_left',
  'note',
  'out_of_balance',
  'release_delayed',
  'release_requested',
  'release_unsupported',
  'removed_by_operator',
  'running',
  'schedule_refused',
  'schedule_start',
  'schedule_stop',
  'secrets_lost',
  'spend_cap_reached',
  'ssh_ready',
  'ssh_silent',
  'start_refused',
  'start_requested',
  'start_unavailable',
  'stop_delayed',
  'stop_requested',
  'stop_time_reached',
  'stopped',
  'stopped_by_operator',
  'suspended',
  'suspension_expired',
  'unpaid',
] as const;
export type PlatformEvent = (typeof PLATFORM_EVENTS)[number];

/** The kinds of events that agents report. A later agent can report more kinds. */
export const HOST_EVENTS = [
  'destroy_attempt',
  'interrupted',
  'prepared',
  'preparing',
  'pulled',
  'pulling',
  'stop_attempt',
  'waiting',
] as const;

/** What stands before the lines that a workload has printed, in the message of an event. */
export const BEFORE_OUTPUT = '; its last lines:';

const RESERVED: ReadonlySet<string> = new Set([...INSTANCE_ERRORS, ...PLATFORM_EVENTS]);

/** Returns the kind of an event that an agent reported: `note` for a kind that only the control plane itself writes. */
export function hostEvent(kind: string): string {
  return RESERVED.has(kind) ? 'note' : kind;
}
