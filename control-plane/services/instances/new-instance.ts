import { mergeEnvironment, type EnvEntry } from '../../domain/instances/environment.js';
import type { InstanceLimits } from '../../domain/money/instance-limits.js';
import { instancePorts } from '../../domain/catalogue/template-port.js';
import type { Row } from '../../store/schema.js';
import { insertRow } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import type { OfferDetails } from '../catalogue/offer-details.js';
import type { Core } from '../system/platform.js';
import { openEnvironment, openRegistry } from '../catalogue/stored-template.js';
import { describeTemplate, type TemplateDetails } from '../catalogue/templates.js';
import { fingerprintOf } from '../organizations/ssh-public-key.js';
import { claimGpus } from './claims.js';
import type { Instance } from './queries.js';
import { encryptWorkload, type Workload } from './workload.js';

/** The organization and the caller that an instance belongs to. */
export interface Owner {
  organizationId: string;
  /** The `deployed_by` of the API: an e-mail address, or the name and prefix of a team key. */
  deployedBy: string;
  apiKeyId: string | null;
}

export interface Deployment {
  request: { disk_gb: number; label: string | null; env_overrides: EnvEntry[] } & Partial<InstanceLimits>;
  template: Row<'templates'>;
  offer: OfferDetails;
  sshKey: Pick<Row<'ssh_keys'>, 'public_key'> | null;
  /** The UUIDs of the instance's GPUs. */
  gpus: string[];
}

/** Records an instance in `creating` and claims its GPUs. It copies the present template, prices and terms. */
export function insertInstance(
  core: Core,
  tx: Tx,
  owner: Owner,
  deployment: Deployment,
  identity = { id: tx.id(), sequence: 0 },
): Instance {
  const instance = { ...newRow(core, tx, owner, deployment), ...identity };
  tx.run(insertRow('instances', instance));
  for (const gpu_uuid of deployment.gpus) {
    tx.run(insertRow('instance_gpus', { instance_id: instance.id, gpu_uuid }));
  }
  claimGpus(tx, instance, deployment.gpus);
  return instance;
}

function newRow(core: Core, tx: Tx, owner: Owner, deployment: Deployment): Omit<Instance, 'id' | 'sequence'> {
  const { request, offer } = deployment;
  const { ids, encryption } = core;
  const template = describeTemplate(core, deployment.template);
  const accessToken = template.uses_access_token ? ids.hex(24) : null;
  return {
    organization_id: owner.organizationId,
    machine_id: offer.machine.id,
    offer_id: offer.id,
    template_id: template.id,
    label: request.label,
    status: 'creating',
    num_gpus: deployment.gpus.length,
    disk_gb: request.disk_gb,
    price_per_hour_micro: offer.price_per_hour_micro,
    storage_price_per_gb_hour_micro: offer.storage_price_per_gb_hour_micro,
    template_snapshot: JSON.stringify({ ...template, readme: null, onstart: null }),
    workload_encrypted: encryptWorkload(encryption, workloadOf(core, template, deployment, accessToken)),
    access_token_encrypted: accessToken === null ? null : encryption.encrypt('instance.access_token', accessToken),
    ssh_user: template.ssh_user,
    ssh_host: null,
    ssh_port: null,
    jupyter_url: null,
    open_url: null,
    error_code: null,
    error_message: null,
    gpus_released: 0,
    gpu_release: null,
    gpu_release_requested_at: null,
    spend_micro: 0,
    gpu_settled_ms: 0,
    disk_settled_ms: 0,
    deployed_by: owner.deployedBy,
    api_key_id: owner.apiKeyId,
    run_key_id: owner.apiKeyId,
    run_id: null,
    report_number: 0,
    last_lines: null,
    created_at: tx.now,
    started_at: null,
    status_changed_at: tx.now,
    progress_at: tx.now,
    destroyed_at: null,
    charge_from: null,
    charge_to: null,
    run_not_before: null,
    ssh_ready_at: null,
    ssh_host_key: null,
    release_stopped_after_ms: offer.release_stopped_after_ms,
    release_gpus_at: null,
    access_revision: 0,
    access_replacement: null,
    stop_at: request.stop_at ?? null,
    max_charge_micro: request.max_charge_micro ?? null,
    idle_stop_minutes: request.idle_stop_minutes ?? null,
    on_limit: request.on_limit ?? null,
    max_charge_from: (request.max_charge_micro ?? null) === null ? null : tx.now,
    charge_told_percent: null,
    disk_told_percent: null,
    idle_from: null,
    idle_to: null,
    idle_stops_at: null,
    ssh_key_fingerprint: fingerprintOf(deployment.sshKey?.public_key ?? ''),
  };
}

function workloadOf(
  { encryption }: Core,
  template: TemplateDetails,
  { request, template: row, offer, sshKey, gpus }: Deployment,
  accessToken: string | null,
): Workload {
  return {
    image: template.image,
    registry: openRegistry(encryption, row.registry_encrypted),
    env: mergeEnvironment(openEnvironment(encryption, row.env_encrypted), request.env_overrides, {
      numGpus: gpus.length,
      accessToken,
    }),
    command: template.command,
    onstart: template.onstart ?? '',
    interactive: template.mode.length > 0,
    sshUser: template.ssh_user,
    sshAuthorizedKey: sshKey?.public_key ?? '',
    ports: instancePorts(template.mode, template.ports).map(({ open_button: openButton, ...port }) => ({
      ...port,
      openButton,
    })),
    diskGb: request.disk_gb,
    cpuMillis: offer.slice.cpuMillis,
    memoryMb: offer.slice.memoryMb,
    accessToken: accessToken ?? '',
    virtualMachine: template.kind === 'vm',
  };
}
