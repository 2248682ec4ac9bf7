import type { ApiKeyKind, Role } from './caller.js';
import type { InstanceStatus } from './instances/instance-state.js';
import type { Period } from './money/spend-cap.js';
import type { ScheduleAction } from './instances/schedule.js';
import type { DisabledReason } from './webhook.js';

/** The stream of what operators are told; every other stream is an organization's and has its id. */
export const OPERATORS = 'operators';

/** What each type of event says about its subject. Times are ISO 8601, money is integer micro-dollars. */
export interface EventData {
  'instance.status_changed': { previous_status: InstanceStatus | null; status: InstanceStatus };
  'instance.progress': { percent: number | null };
  'instance.gpus_released': Record<string, never>;
  'instance.charge_limit': { percent: number; limit_micro: number; spent_micro: number };
  'instance.disk_filling': { percent: number };
  'instance.gpu_unhealthy': { gpu_uuid: string; reason: string | null };
  'instance.gpu_healthy': { gpu_uuid: string };
  'instance.idle': { idle_since: string; stops_at: string };
  'instance.noted': Record<string, never>;
  'instance.schedule_refused': { action: ScheduleAction; code: string };
  'api_key.created': KeyData;
  'api_key.revoked': KeyData;
  'api_key.expired': KeyData;
  'member.joined': MemberData;
  'member.role_changed': MemberData;
  'member.left': MemberData;
  'invite.created': InviteData;
  'invite.revoked': InviteData;
  'billing.credited': MoneyData & { reason: string | null };
  'billing.debited': MoneyData & { reason: string | null };
  'billing.paid': MoneyData & { payment_id: string };
  'billing.payment_failed': MoneyData & { payment_id: string };
  'billing.refunded': MoneyData & { payment_id: string };
  'billing.refund_failed': MoneyData & { payment_id: string };
  'billing.dispute_debited': MoneyData & { payment_id: string };
  'billing.dispute_returned': MoneyData & { payment_id: string };
  'billing.payments_frozen': Record<string, never>;
  'billing.payments_unfrozen': Record<string, never>;
  'billing.balance_low': { balance_micro: number; hours: number; lasts_until: string };
  'billing.balance_exhausted': { balance_micro: number };
  'billing.spend_cap': {
    api_key_id: string | null;
    period: Period;
    percent: number;
    limit_micro: number;
    spent_micro: number;
  };
  'billing.disks_at_risk': { balance_micro: number; hours: number; destroyed_at: string; instances: number };
  'machine.maintenance_planned': MachineData & { starts_at: string; ends_at: string; instance_ids: string[] };
  'machine.maintenance_cancelled': MachineData & { instance_ids: string[] };
  'machine.away': MachineData & { since: string };
  'machine.back': MachineData;
  'machine.refusing': MachineData & { reason: string; since: string };
  'machine.accepting': MachineData;
  'machine.upgrade_failed': MachineData & { version: string; reason: string };
  'gpu.unhealthy': MachineData & { gpu_uuid: string; reason: string | null };
  'gpu.healthy': MachineData & { gpu_uuid: string };
  'gpu.disputed': MachineData & { gpu_uuid: string; owner_machine_id: string; owner_machine_name: string };
  'command.stuck': MachineData & { instance_id: string; command_id: string; command: string; since: string };
  'operator.granted': OperatorData;
  'operator.withdrawn': OperatorData;
  'workload.quarantined': MachineData & { quarantine_id: string; instance_id: string };
  'machine.notice': MachineData & { instance_ids: string[]; message: string };
  'member.sessions_ended': { user_id: string; reason: string; api_keys_revoked: number };
  'organization.suspended': { reason: string; disks_kept_until: string };
  'organization.restored': { reason: string };
  'organization.disks_at_risk': { reason: string; hours: number; destroyed_at: string; instances: number };
  'webhook.disabled': { webhook_endpoint_id: string; reason: DisabledReason };
}

export type EventType = keyof EventData;

/** In whose stream the events of each type are. */
export const STREAM_OF: Readonly<Record<EventType, 'organization' | 'operators'>> = {
  'instance.status_changed': 'organization',
  'instance.progress': 'organization',
  'instance.gpus_released': 'organization',
  'instance.charge_limit': 'organization',
  'instance.disk_filling': 'organization',
  'instance.gpu_unhealthy': 'organization',
  'instance.gpu_healthy': 'organization',
  'instance.idle': 'organization',
  'instance.noted': 'organization',
  'instance.schedule_refused': 'organization',
  'api_key.created': 'organization',
  'api_key.revoked': 'organization',
  'api_key.expired': 'organization',
  'member.joined': 'organization',
  'member.role_changed': 'organization',
  'member.left': 'organization',
  'invite.created': 'organization',
  'invite.revoked': 'organization',
  'billing.credited': 'organization',
  'billing.paid': 'organization',
  'billing.payment_failed': 'organization',
  'billing.refunded': 'organization',
  'billing.debited': 'organization',
  'billing.refund_failed': 'organization',
  'billing.dispute_debited': 'organization',
  'billing.dispute_returned': 'organization',
  'billing.payments_frozen': 'organization',
  'billing.payments_unfrozen': 'organization',
  'billing.balance_low': 'organization',
  'billing.balance_exhausted': 'organization',
  'billing.spend_cap': 'organization',
  'billing.disks_at_risk': 'organization',
  'machine.maintenance_planned': 'organization',
  'machine.maintenance_cancelled': 'organization',
  'machine.notice': 'organization',
  'member.sessions_ended': 'organization',
  'organization.suspended': 'organization',
  'organization.restored': 'organization',
  'organization.disks_at_risk': 'organization',
  'webhook.disabled': 'organization',
  'machine.away': 'operators',
  'machine.back': 'operators',
  'machine.refusing': 'operators',
  'machine.accepting': 'operators',
  'machine.upgrade_failed': 'operators',
  'gpu.unhealthy': 'operators',
  'gpu.healthy': 'operators',
  'gpu.disputed': 'operators',
  'command.stuck': 'operators',
  'operator.granted': 'operators',
  'operator.withdrawn': 'operators',
  'workload.quarantined': 'operators',
};

/** Every type of event. */
export const EVENT_TYPES = Object.keys(STREAM_OF) as EventType[];
/** The types of the events of organizations, which renters can filter by. */
export const RENTER_EVENT_TYPES = EVENT_TYPES.filter((type) => STREAM_OF[type] === 'organization');

interface KeyData {
  api_key_id: string;
  name: string;
  kind: ApiKeyKind;
  prefix: string;
}

interface MemberData {
  user_id: string;
  role: Role;
}

interface InviteData {
  invite_id: string;
  role: Role;
}

interface MoneyData {
  amount_micro: number;
  balance_micro: number;
}

interface MachineData {
  machine_id: string;
  machine_name: string;
}

interface OperatorData {
  user_id: string;
  /** The operator who did it. */
  by_user_id: string;
  reason: string;
}

/** The id that stands before the first event of every stream. */
export const BEGINNING = '0.0';

/** Writes the id of an event: `epoch.number`. */
export function eventId({ epoch, number }: { epoch: number; number: number }): string {
  return `${epoch}.${number}`;
}

/** Reads the id of an event; undefined if it is none. */
export function parseEventId(id: string): { epoch: number; number: number } | undefined {
  const parts = /^(\d{1,15})\.(\d{1,15})$/.exec(id);
  return parts ? { epoch: Number(parts[1]), number: Number(parts[2]) } : undefined;
}

/** Returns the percent that a host's progress message begins with; null if it begins with none. */
export function percentOf(message: string): number | null {
  const percent = /^(\d{1,3}) ?%/.exec(message)?.[1];
  return percent === undefined ? null : Math.min(Number(percent), 100);
}
