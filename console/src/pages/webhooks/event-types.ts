import type { WebhookRequest } from '../../data/api/models.js';

export type EventType = NonNullable<WebhookRequest['types']>[number];

/** Every type of event that an organization has: the compiler says what is missing. */
export const EVENT_TYPES: Readonly<Record<EventType, true>> = {
  'instance.status_changed': true,
  'instance.progress': true,
  'instance.gpus_released': true,
  'instance.charge_limit': true,
  'instance.disk_filling': true,
  'instance.gpu_unhealthy': true,
  'instance.gpu_healthy': true,
  'instance.idle': true,
  'instance.noted': true,
  'instance.schedule_refused': true,
  'api_key.created': true,
  'api_key.revoked': true,
  'api_key.expired': true,
  'member.joined': true,
  'member.role_changed': true,
  'member.left': true,
  'invite.created': true,
  'invite.revoked': true,
  'billing.credited': true,
  'billing.paid': true,
  'billing.payment_failed': true,
  'billing.refunded': true,
  'billing.debited': true,
  'billing.refund_failed': true,
  'billing.dispute_debited': true,
  'billing.dispute_returned': true,
  'billing.payments_frozen': true,
  'billing.payments_unfrozen': true,
  'billing.balance_low': true,
  'billing.balance_exhausted': true,
  'billing.spend_cap': true,
  'billing.disks_at_risk': true,
  'machine.maintenance_planned': true,
  'machine.maintenance_cancelled': true,
  'machine.notice': true,
  'member.sessions_ended': true,
  'organization.suspended': true,
  'organization.restored': true,
  'organization.disks_at_risk': true,
  'webhook.disabled': true,
};

const TYPES = Object.keys(EVENT_TYPES) as EventType[];

/** The types by what they are about, the first word of each: `instance`, `billing`. */
export const GROUPS: readonly { about: string; types: readonly EventType[] }[] = [
  ...new Set(TYPES.map((type) => type.slice(0, type.indexOf('.')))),
].map((about) => ({ about, types: TYPES.filter((type) => type.startsWith(`${about}.`)) }));
