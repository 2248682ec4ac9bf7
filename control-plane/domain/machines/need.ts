import { HOUR_MS, MINUTE_MS } from '../../../shared/time.js';

/** Why a machine can need an act of an operator. */
export const MACHINE_NEEDS = [
  'machine_away',
  'machine_lost',
  'machine_refusing',
  'commands_failing',
  'gpus_unhealthy',
  'gpus_disputed',
  'disks_unlimited',
  'clock_off',
] as const;
export type MachineNeed = (typeof MACHINE_NEEDS)[number];

/** Why an organization can need one. */
export const ORGANIZATION_NEEDS = ['payment_disputed', 'organization_suspended', 'admin_refused'] as const;
export type OrganizationNeed = (typeof ORGANIZATION_NEEDS)[number];

/** What can need an act of an operator: what concerns everybody first, then what concerns a machine, a renter. */
export const NEED_KINDS = [
  'clock_untrusted',
  'disk_full',
  'backup_overdue',
  'certificate_expiring',
  'worker_failing',
  'settlement_late',
  'mail_waiting',
  ...MACHINE_NEEDS,
  'command_stuck',
  'workload_quarantined',
  'stop_ignored',
  ...ORGANIZATION_NEEDS,
] as const;
export type NeedKind = (typeof NEED_KINDS)[number];

/** After how long something needs an act. The alerts of packaging/alerts.yml have the same limits. */
export const NEED_AFTER_MS = {
  backup_overdue: HOUR_MS,
  settlement_late: 2 * MINUTE_MS,
  mail_waiting: HOUR_MS,
  command_stuck: 15 * MINUTE_MS,
} as const;
