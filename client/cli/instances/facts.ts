import type { Instance } from '../../api/index.js';
import { dollars } from '../output/money.js';
import { ago, minuteOf } from '../output/times.js';

type Fact = readonly [name: string, value: string | number | null];

/** Returns what a person wants to know of an instance. What an instance does not have is left out. */
export function factsOf(instance: Instance, now: number): Fact[] {
  const { ssh_host, ssh_port, error_code, error_message } = instance;
  const ssh = ssh_host === null ? null : `${instance.ssh_user}@${ssh_host} port ${ssh_port ?? ''}`;
  const facts: Fact[] = [
    ['id', instance.id],
    ['label', instance.label],
    ['status', `${instance.status} (${ago(instance.status_changed_at, now)})`],
    ['error', error_code === null ? null : `${error_code}: ${error_message ?? ''}`],
    ['template', instance.template.name],
    ['image', instance.template.image],
    ['offer', instance.offer.id],
    ['disk', `${instance.disk_gb} GB`],
    ['price', `${dollars(instance.price_per_hour_micro)} an hour while it runs`],
    [
      'disk price',
      `${dollars(instance.storage_price_per_gb_hour_micro * instance.disk_gb)} an hour while it is stopped`,
    ],
    ['spent', dollars(instance.spend_micro)],
    ['ssh', ssh],
    ['host key', instance.ssh_host_key],
    // Absent from the answers of earlier releases.
    ['ssh key', instance.ssh_key_fingerprint ?? null],
    ['page', instance.open_url ?? instance.jupyter_url],
    ['stops at', instance.stop_at === null ? null : minuteOf(instance.stop_at)],
    ['costs at most', instance.max_charge_micro === null ? null : dollars(instance.max_charge_micro)],
    ['idle stop', instance.idle_stop_minutes === null ? null : `after ${instance.idle_stop_minutes} min`],
    ['on limit', instance.on_limit],
    ['deployed by', instance.deployed_by],
    ['created', minuteOf(instance.created_at)],
    ['started', instance.started_at === null ? null : minuteOf(instance.started_at)],
    ['allowed now', instance.allowed_actions.join(', ')],
  ];
  return facts.filter(([, value]) => value !== null);
}
