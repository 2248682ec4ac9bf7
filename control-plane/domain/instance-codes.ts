/** Why an instance is in `error`, or why a stop or start of it did not land: `error_code`, for renters to act upon. */
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

/** What the timeline of an instance tells by itself, besides its errors. */
export const PLATFORM_EVENTS = [
  'access_refused',
  'access_replaced',
  'access_requested',
  'adopted',
  'cleaned_up',
  'created',
  'destroy_delayed',
  'destroy_requested',
  'destroy_scheduled',
  'destroy_soon',
  'destroyed',
  'disk_back',
  'docker_down',
  'error_expired',
  'host_away',
  'machine_cordoned',
  'member_left',
  'note',
  'out_of_balance',
  'release_delayed',
  'release_requested',
  'release_unsupported',
  'removed_by_operator',
  'running',
  'secrets_lost',
  'ssh_ready',
  'ssh_silent',
  'start_refused',
  'start_requested',
  'start_unavailable',
  'stop_delayed',
  'stop_requested',
  'stopped',
  'stopped_by_operator',
  'unpaid',
] as const;
export type PlatformEvent = (typeof PLATFORM_EVENTS)[number];

/** What hosts tell in it. A later agent may tell of more. */
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

const RESERVED: ReadonlySet<string> = new Set([...INSTANCE_ERRORS, ...PLATFORM_EVENTS]);

/** The kind of what a host tells: it cannot pass for what the platform itself says. */
export function hostEvent(kind: string): string {
  return RESERVED.has(kind) ? 'note' : kind;
}
