import type { components, Gpurent, Instance } from '../api/index.js';
import type { Balance } from './money.js';
import { untrusted, untrustedOrNull } from './untrusted.js';

type Schemas = components['schemas'];

/** Shows an instance without its access token, and without links that contain it. */
export function instanceView(instance: Instance) {
  const { label, template, error_message, ...rest } = instance;
  return {
    id: rest.id,
    label: untrustedOrNull(label),
    status: rest.status,
    price_per_hour_micro: rest.price_per_hour_micro,
    disk_per_hour_micro: diskPerHour(instance),
    disk_gb: rest.disk_gb,
    spend_micro: rest.spend_micro,
    template: { id: template.id, name: untrusted(template.name) },
    offer_id: rest.offer.id,
    ssh:
      rest.ssh_host === null
        ? null
        : { host: untrusted(rest.ssh_host), port: rest.ssh_port, user: untrusted(rest.ssh_user) },
    created_at: rest.created_at,
    started_at: rest.started_at,
    limits: {
      stop_at: rest.stop_at,
      max_charge_micro: rest.max_charge_micro,
      idle_stop_minutes: rest.idle_stop_minutes,
      on_limit: rest.on_limit ?? 'stop',
    },
    gpus_released: rest.gpus_released,
    releases_gpus_at: rest.releases_gpus_at,
    error: error_message === null ? null : { code: rest.error_code, message: untrusted(error_message, 500) },
    allowed_actions: rest.allowed_actions,
  };
}

/** Returns what an hour of its disk costs, in micro-dollars. */
export function diskPerHour({ disk_gb, storage_price_per_gb_hour_micro }: Instance): number {
  return disk_gb * storage_price_per_gb_hour_micro;
}

/** How people call an instance: its label, or its id if it has none. */
export function nameOf({ id, label }: Pick<Instance, 'id' | 'label'>): string {
  return label === null || label === '' ? id : label;
}

export function offerView(offer: Schemas['Offer']) {
  const { machine } = offer;
  return {
    id: offer.id,
    state: offer.state,
    gpu_model: untrustedOrNull(offer.gpu_model),
    num_gpus: offer.num_gpus,
    gpu_memory_mb: offer.gpu_memory_mb,
    cpu_cores: offer.cpu_cores,
    memory_mb: offer.memory_mb,
    price_per_hour_micro: offer.price_per_hour_micro,
    storage_price_per_gb_hour_micro: offer.storage_price_per_gb_hour_micro,
    release_stopped_after_hours: offer.release_stopped_after_hours,
    machine: {
      name: untrusted(machine.name),
      region: untrusted(machine.region),
      total_cpu_cores: machine.cpu_cores,
      total_memory_mb: machine.memory_mb,
      disk_available_gb: machine.disk_available_gb,
      cuda_version: untrustedOrNull(machine.cuda_version),
      vm_capable: machine.vm_capable,
      next_maintenance: machine.next_maintenance,
    },
  };
}

export function templateView(template: Schemas['Template']) {
  return {
    id: template.id,
    name: untrusted(template.name),
    description: untrusted(template.description),
    publisher: template.visibility === 'system' ? 'the operator' : untrustedOrNull(template.publisher),
    visibility: template.visibility,
    kind: template.kind,
    mode: template.mode,
    image: untrusted(template.image),
    cuda_min: template.cuda_min ?? null,
    cuda_max: template.cuda_max,
    recommended: template.recommended,
    coming_soon: template.coming_soon,
  };
}

/** Reads what the organization has, and how long it lasts with what is charged now. */
export async function balanceOf(gpurent: Gpurent): Promise<Balance & { burn_per_hour_micro: number }> {
  const organization = await gpurent.get('/v1/orgs/current');
  const { balance_micro, lasts_until, burn_per_hour_micro, charged_per_hour_micro } = organization;
  return { balance_micro, lasts_until, burn_per_hour_micro, charged_per_hour_micro };
}
