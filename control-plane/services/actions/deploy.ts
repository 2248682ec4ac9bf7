import type { Caller } from '../../domain/caller.js';
import { burnPerHourMicro } from '../../domain/burn.js';
import type { EnvEntry } from '../../domain/environment.js';
import type { InstanceLimits } from '../../domain/instance-limits.js';
import { isMaintenanceNear, isNewerVersion } from '../../domain/machine.js';
import { Refusal } from '../../domain/refusal.js';
import type { Row } from '../../store/schema.js';
import { compileOnce, query } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import { freeGpus } from '../catalogue/offer-obstacle.js';
import { describeOffer, type OfferDetails } from '../catalogue/offer-details.js';
import { settleOrganizations } from '../billing/settle.js';
import type { Platform } from '../system/platform.js';
import { findAttachableKey } from '../accounts/ssh-keys.js';
import { findTemplate } from '../catalogue/templates.js';
import { recordCommand } from '../instances/commands.js';
import { findReplayed, idempotencyOf, remember } from '../instances/idempotency.js';
import { insertInstance } from '../instances/new-instance.js';
import { checkPayment } from '../billing/payment-check.js';
import { checkSpendCaps } from '../billing/spend-check.js';
import { findLiveRates } from '../instances/queries.js';
import { checkStopTime } from './change-instance.js';
import { describeInstance, type InstanceDetails } from './instance-details.js';
import { failUntried, findSlowImage } from '../instances/slow-images.js';
import { recordTransition } from '../events/timeline.js';

export interface DeployRequest extends Partial<InstanceLimits> {
  offer_id: string;
  template_id: string;
  disk_gb: number;
  label: string | null;
  ssh_key_id: string | null;
  env_overrides: EnvEntry[];
}

const INSTANCE_LIMIT = 25;
const SUPPORTED_ARCH = 'x86_64';

/**
 * Rents an offer. Checks the refusals of API rule 18 in their order, then claims the GPUs and records the instance and its provision
 * command, all in one transaction. A refusal stores and charges nothing (API rule 19). The same request with the same idempotency
 * key within 24 hours returns the present state of the first instance. A deploy of an image that was recently too slow is
 * accepted, and its instance goes to `error` in the same transaction.
 */
export function deploy(
  platform: Platform,
  caller: Caller,
  request: DeployRequest,
  idempotencyKey?: string,
): { instance: InstanceDetails; replayed: boolean } {
  const idempotency =
    idempotencyKey === undefined ? undefined : idempotencyOf(caller.organizationId, idempotencyKey, request);
  return platform.store.transact((tx) => {
    settleOrganizations(platform, tx, [caller.organizationId]);
    const replayed = idempotency && findReplayed(tx, idempotency);
    if (replayed) return { instance: describeInstance(platform, tx, replayed), replayed: true };
    checkStopTime(request.stop_at, tx.now);
    const template = findTemplate(tx, caller.organizationId, request.template_id);
    checkTemplate(template, caller.organizationId);
    const offer = findOffer(platform, tx, request.offer_id);
    checkFit(template, offer, request);
    const sshKey = request.ssh_key_id === null ? null : findAttachableKey(tx, caller, request.ssh_key_id);
    checkMachine(tx, offer.machine, request);
    checkOrganization(tx, caller, offer, request);
    const gpus = pickFreeGpus(offer);

    const owner = {
      organizationId: caller.organizationId,
      deployedBy: deployedBy(caller),
      apiKeyId: caller.kind === 'api_key' ? caller.keyId : null,
    };
    const instance = insertInstance(platform, tx, owner, { request, template, offer, sshKey, gpus });
    const message = `deployed on ${offer.machine.name} with ${offer.num_gpus} GPU(s)`;
    recordTransition(tx, instance, null, { kind: 'created', message });
    if (idempotency) remember(tx, idempotency, instance.id);
    const accepted = describeInstance(platform, tx, instance);
    const slow = findSlowImage(tx, caller.organizationId, template.image);
    if (slow) failUntried(tx, instance, slow);
    else recordCommand(tx, instance, 'provision');
    return { instance: accepted, replayed: false };
  });
}

/** Refuses a template that cannot be deployed: TEMPLATE_COMING_SOON, TEMPLATE_ARCH_UNSUPPORTED, TEMPLATE_REQUIRES_OWNER. */
export function checkTemplate(template: Row<'templates'>, organizationId: string): void {
  if (template.coming_soon)
    throw new Refusal('TEMPLATE_COMING_SOON', 'the image of this template is not published yet');
  if (template.arch !== SUPPORTED_ARCH) {
    throw new Refusal(
      'TEMPLATE_ARCH_UNSUPPORTED',
      `this template needs ${template.arch}, but every machine is ${SUPPORTED_ARCH}; choose another template`,
    );
  }
  if (template.registry_encrypted && template.organization_id !== null && template.organization_id !== organizationId) {
    throw new Refusal(
      'TEMPLATE_REQUIRES_OWNER',
      'the image of this template is in a private registry; only the organization that owns the template can deploy it',
    );
  }
}

function findOffer(platform: Platform, tx: Tx, id: string): OfferDetails {
  const row = tx.get(openOffer({ id }));
  if (!row)
    throw new Refusal('OFFER_UNAVAILABLE', 'no offer with this id is on the market; choose one from GET /v1/offers');
  const offer = describeOffer(platform, tx, row);
  if (offer.machine.removed_at !== null) {
    throw new Refusal(
      'OFFER_NOT_PINNABLE',
      'the machine of this offer was removed; choose another offer from GET /v1/offers',
    );
  }
  if (offer.state !== 'available') throw offerUnavailable();
  return offer;
}

function offerUnavailable(): Refusal {
  return new Refusal('OFFER_UNAVAILABLE', 'this offer is not available now; choose another one from GET /v1/offers');
}

function checkFit(template: Row<'templates'>, { machine }: OfferDetails, { disk_gb }: DeployRequest): void {
  if (template.kind === 'vm' && !machine.vm_capable) {
    throw new Refusal(
      'OFFER_NOT_VM_CAPABLE',
      'the machine of this offer cannot run virtual machines; choose an offer with vm_capable',
    );
  }
  if (
    template.cuda_max !== null &&
    machine.cuda_version !== null &&
    isNewerVersion(machine.cuda_version, template.cuda_max)
  ) {
    throw new Refusal(
      'TEMPLATE_CUDA_TOO_NEW',
      `this template supports CUDA up to ${template.cuda_max}, but the machine has ${machine.cuda_version}; choose another offer`,
    );
  }
  if (disk_gb > machine.disk_gb) {
    throw new Refusal(
      'DISK_TOO_LARGE',
      `the disk of the machine has only ${machine.disk_gb} GB; request a smaller disk_gb`,
      {
        max_disk_gb: machine.disk_gb,
      },
    );
  }
}

function checkMachine(tx: Tx, machine: OfferDetails['machine'], { disk_gb }: DeployRequest): void {
  const { maintenance_starts_at: startsAt, maintenance_ends_at: endsAt } = machine;
  const window = startsAt !== null && endsAt !== null ? { startsAt, endsAt } : null;
  if (window && isMaintenanceNear(window, tx.now)) {
    throw new Refusal(
      'MACHINE_IN_MAINTENANCE',
      'a maintenance window of the machine begins within an hour or has begun; choose another offer or try again after it',
      {
        next_maintenance: new Date(window.startsAt).toISOString(),
      },
    );
  }
  const available = machine.disk_available_gb;
  if (disk_gb > available) {
    throw new Refusal(
      'MACHINE_DISK_EXHAUSTED',
      `only ${available} GB of the machine's disk are free; request a smaller disk_gb or choose another offer`,
      {
        available_disk_gb: available,
        requested_disk_gb: disk_gb,
      },
    );
  }
}

function checkOrganization(tx: Tx, caller: Caller, offer: OfferDetails, { disk_gb }: DeployRequest): void {
  const { organizationId } = caller;
  const live = findLiveRates(tx, organizationId);
  if (live.length >= INSTANCE_LIMIT) {
    throw new Refusal('INSTANCE_LIMIT_REACHED', `the organization has ${live.length} instances; destroy one first`, {
      limit: INSTANCE_LIMIT,
    });
  }
  const apiKeyId = caller.kind === 'api_key' ? caller.keyId : null;
  const added = {
    pricePerHourMicro: offer.price_per_hour_micro,
    storagePricePerGbHourMicro: offer.storage_price_per_gb_hour_micro,
    diskGb: disk_gb,
  };
  const withThis = [...live, { ...added, status: 'creating' as const, apiKeyId }];
  checkPayment(tx, organizationId, burnPerHourMicro(withThis));
  checkSpendCaps(tx, { organizationId, apiKeyId }, withThis);
}

function pickFreeGpus(offer: OfferDetails): string[] {
  const free = freeGpus(offer.gpus).slice(0, offer.num_gpus);
  if (free.length < offer.num_gpus) throw offerUnavailable();
  return free.map((gpu) => gpu.uuid);
}

function deployedBy(caller: Caller): string {
  if (caller.kind === 'session') return caller.email;
  return caller.keyKind === 'team' ? `${caller.name} (${caller.prefix}…)` : caller.creatorEmail;
}

const openOffer = compileOnce(({ id }: { id: string }) =>
  query.selectFrom('offers').selectAll().where('id', '=', id).where('withdrawn_at', 'is', null),
);
