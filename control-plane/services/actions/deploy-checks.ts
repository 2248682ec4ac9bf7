import { burnPerHourMicro, diskPerHourMicro, fullPerHourMicro, type Rates } from '../../domain/money/burn.js';
import type { Caller } from '../../domain/caller.js';
import { isMaintenanceNear } from '../../domain/machines/machine.js';
import { Refusal } from '../../domain/refusal.js';
import { needsNewerCuda, needsOlderCuda, needsVms, SUPPORTED_ARCH } from '../../domain/catalogue/template-fit.js';
import type { Row } from '../../store/schema.js';
import { compileOnce, query } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import { findAttachableKey } from '../organizations/ssh-keys.js';
import type { Payer } from '../billing/limits/payer.js';
import { refusalOfBalance, refusalOfFreeze } from '../billing/payments/payment-check.js';
import { describeOffer, type OfferDetails } from '../catalogue/offer-details.js';
import { freeGpus } from '../catalogue/offer-obstacle.js';
import { findTemplate } from '../catalogue/templates.js';
import { refusalOfCaps, refusalOfOwnLimit } from '../billing/limits/spend-check.js';
import type { Platform } from '../system/platform.js';

const INSTANCE_LIMIT = 25;

type Template = Row<'templates'>;

/** What of a request to deploy is checked. */
export interface DeployChoice {
  offer_id: string;
  template_id: string;
  disk_gb: number;
  ssh_key_id: string | null;
  stop_at?: number | null;
  max_charge_micro?: number | null;
  /** The highest prices that the caller accepts; null: any. */
  max_gpu_per_hour_micro?: number | null;
  max_disk_per_hour_micro?: number | null;
}

/** A choice with everything that its checks look at. What the caller cannot use is the refusal that says so. */
export interface PlannedDeploy {
  choice: DeployChoice;
  organizationId: string;
  now: number;
  template: Template | Refusal;
  /** An offer that is not withdrawn, also one that is not available. */
  offer: OfferDetails | Refusal;
  /** Null: none was chosen. */
  sshKey: Row<'ssh_keys'> | null | Refusal;
  payer: Payer;
}

/** What a deploy uses that meets no refusal. */
export interface CheckedDeploy {
  template: Template;
  offer: OfferDetails;
  sshKey: Row<'ssh_keys'> | null;
  /** The UUIDs of the GPUs to claim. */
  gpus: string[];
}

/** Finds what a choice names. Refuses nothing and writes nothing. */
export function planDeploy(
  platform: Platform,
  tx: Tx,
  caller: Caller,
  choice: DeployChoice,
  payer: Payer,
): PlannedDeploy {
  const { organizationId } = caller;
  const { ssh_key_id: sshKeyId } = choice;
  return {
    choice,
    organizationId,
    now: tx.now,
    template: orRefusal(() => findTemplate(tx, organizationId, choice.template_id)),
    offer: orRefusal(() => findOffer(platform, tx, choice.offer_id)),
    sshKey: sshKeyId === null ? null : orRefusal(() => findAttachableKey(tx, caller, sshKeyId)),
    payer,
  };
}

/** Returns what a planned deploy uses. Refuses with the first refusal of API rule 18 that it meets. */
export function checkDeploy(planned: PlannedDeploy): CheckedDeploy {
  for (const check of CHECKS) {
    const refusal = check(planned);
    if (refusal) throw refusal;
  }
  const offer = orThrow(planned.offer);
  const gpus = freeGpus(offer.gpus).slice(0, offer.num_gpus);
  return {
    template: orThrow(planned.template),
    offer,
    sshKey: orThrow(planned.sshKey),
    gpus: gpus.map(({ uuid }) => uuid),
  };
}

/** Returns every refusal that a planned deploy meets, in the order of API rule 18. Leaves out checks of what was not found. */
export function refusalsOf(planned: PlannedDeploy): Refusal[] {
  return CHECKS.flatMap((check) => check(planned) ?? []);
}

/** Refuses a template that cannot be deployed: TEMPLATE_COMING_SOON, TEMPLATE_ARCH_UNSUPPORTED, TEMPLATE_REQUIRES_OWNER. */
export function checkTemplate(template: Template, organizationId: string): void {
  for (const check of TEMPLATE_CHECKS) {
    const refusal = check(template, organizationId);
    if (refusal) throw refusal;
  }
}

/** Returns the prices and disk size of the planned instance; undefined: there is no such offer. */
export function ratesOf({ offer, choice }: PlannedDeploy): Rates | undefined {
  if (offer instanceof Refusal) return undefined;
  return {
    pricePerHourMicro: offer.price_per_hour_micro,
    storagePricePerGbHourMicro: offer.storage_price_per_gb_hour_micro,
    diskGb: choice.disk_gb,
  };
}

/** Returns one hour of the organization's burn after the deploy, in micro-dollars; undefined: there is no such offer. */
export function burnAfter(planned: PlannedDeploy): number | undefined {
  const rates = ratesOf(planned);
  return rates && burnPerHourMicro(planned.payer.live) + fullPerHourMicro(rates);
}

const TEMPLATE_CHECKS: readonly ((template: Template, organizationId: string) => Refusal | undefined)[] = [
  notPublished,
  otherArchitecture,
  foreignRegistry,
];

type Check = (planned: PlannedDeploy) => Refusal | undefined;

/** Every check of a deploy, in the order of API rule 18. */
const CHECKS: readonly Check[] = [
  ({ payer }) => payer.suspension,
  ({ template }) => refusalIn(template),
  ...TEMPLATE_CHECKS.map((check) => ofTemplate((template, { organizationId }) => check(template, organizationId))),
  ({ offer }) => refusalIn(offer),
  ofOffer(notOnMarket),
  tooExpensive,
  ofBoth(notVmCapable),
  ofBoth(tooNewCuda),
  ofBoth(tooOldCuda),
  ofOffer(tooLargeDisk),
  ({ sshKey }) => refusalIn(sshKey),
  ofOffer(inMaintenance),
  ofOffer(exhaustedDisk),
  tooManyInstances,
  ({ payer }) => refusalOfFreeze(payer.isFrozen),
  uncoveredBurn,
  usedUpCap,
  tooNearOwnLimit,
  ofOffer(tooFewGpus),
];

function orRefusal<T>(find: () => T): T | Refusal {
  try {
    return find();
  } catch (error) {
    if (error instanceof Refusal) return error;
    throw error;
  }
}

function orThrow<T>(found: T | Refusal): T {
  if (found instanceof Refusal) throw found;
  return found;
}

function refusalIn(found: unknown): Refusal | undefined {
  return found instanceof Refusal ? found : undefined;
}

/** Returns the check of the template, which is left out if there is none. */
function ofTemplate(check: (template: Template, planned: PlannedDeploy) => Refusal | undefined): Check {
  return (planned) => (planned.template instanceof Refusal ? undefined : check(planned.template, planned));
}

function ofOffer(check: (offer: OfferDetails, planned: PlannedDeploy) => Refusal | undefined): Check {
  return (planned) => (planned.offer instanceof Refusal ? undefined : check(planned.offer, planned));
}

function ofBoth(check: (template: Template, offer: OfferDetails) => Refusal | undefined): Check {
  return ofTemplate((template, planned) => ofOffer((offer) => check(template, offer))(planned));
}

function notPublished({ coming_soon }: Template): Refusal | undefined {
  if (!coming_soon) return undefined;
  return new Refusal('TEMPLATE_COMING_SOON', 'the image of this template is not published yet');
}

function otherArchitecture({ arch }: Template): Refusal | undefined {
  if (arch === SUPPORTED_ARCH) return undefined;
  return new Refusal(
    'TEMPLATE_ARCH_UNSUPPORTED',
    `this template needs ${arch}, but every machine is ${SUPPORTED_ARCH}; choose another template`,
  );
}

function foreignRegistry(template: Template, organizationId: string): Refusal | undefined {
  const { registry_encrypted, organization_id: owner } = template;
  if (!registry_encrypted || owner === null || owner === organizationId) return undefined;
  return new Refusal(
    'TEMPLATE_REQUIRES_OWNER',
    'the image of this template is in a private registry; only the organization that owns the template can deploy it',
  );
}

/** Returns an offer that is not withdrawn, in any other state. Refuses with OFFER_UNAVAILABLE. */
function findOffer(platform: Platform, tx: Tx, id: string): OfferDetails {
  const row = tx.get(openOffer({ id }));
  if (row) return describeOffer(platform, tx, row);
  throw new Refusal('OFFER_UNAVAILABLE', 'no offer with this id is on the market; choose another offer');
}

const openOffer = compileOnce(({ id }: { id: string }) =>
  query.selectFrom('offers').selectAll().where('id', '=', id).where('withdrawn_at', 'is', null),
);

function notOnMarket({ machine, state }: OfferDetails): Refusal | undefined {
  if (machine.removed_at !== null) {
    return new Refusal('OFFER_NOT_PINNABLE', 'the machine of this offer was removed; choose another offer');
  }
  return state === 'available' ? undefined : offerUnavailable();
}

function tooExpensive(planned: PlannedDeploy): Refusal | undefined {
  const rates = ratesOf(planned);
  if (!rates) return undefined;
  const { max_gpu_per_hour_micro: mostGpu, max_disk_per_hour_micro: mostDisk } = planned.choice;
  const [gpu_per_hour_micro, disk_per_hour_micro] = [rates.pricePerHourMicro, diskPerHourMicro(rates)];
  if (gpu_per_hour_micro <= (mostGpu ?? Infinity) && disk_per_hour_micro <= (mostDisk ?? Infinity)) return undefined;
  return new Refusal(
    'OFFER_TOO_EXPENSIVE',
    'this offer costs more by the hour than this deploy accepts; look at its price again, or choose another offer',
    { gpu_per_hour_micro, disk_per_hour_micro },
  );
}

function offerUnavailable(): Refusal {
  return new Refusal('OFFER_UNAVAILABLE', 'this offer is not available now; choose another offer');
}

function notVmCapable(template: Template, { machine }: OfferDetails): Refusal | undefined {
  if (!needsVms(template, machine)) return undefined;
  return new Refusal(
    'OFFER_NOT_VM_CAPABLE',
    'the machine of this offer cannot run virtual machines; choose an offer with vm_capable',
  );
}

function tooNewCuda(template: Template, { machine }: OfferDetails): Refusal | undefined {
  if (!needsOlderCuda(template, machine)) return undefined;
  const [most, version] = [template.cuda_max, machine.cuda_version];
  return new Refusal(
    'TEMPLATE_CUDA_TOO_NEW',
    `this template supports CUDA up to ${most}, but the machine has ${version}; choose another offer`,
  );
}

function tooOldCuda(template: Template, { machine }: OfferDetails): Refusal | undefined {
  if (!needsNewerCuda(template, machine)) return undefined;
  const [least, version] = [template.cuda_min, machine.cuda_version];
  return new Refusal(
    'TEMPLATE_CUDA_TOO_OLD',
    `this template needs CUDA ${least} or newer, but the driver of the machine supports only ${version}; choose another offer`,
  );
}

function tooLargeDisk({ machine }: OfferDetails, { choice }: PlannedDeploy): Refusal | undefined {
  if (choice.disk_gb <= machine.disk_gb) return undefined;
  return new Refusal(
    'DISK_TOO_LARGE',
    `the disk of the machine has only ${machine.disk_gb} GB; request a smaller disk_gb`,
    {
      max_disk_gb: machine.disk_gb,
    },
  );
}

function inMaintenance({ machine }: OfferDetails, { now }: PlannedDeploy): Refusal | undefined {
  const { maintenance_starts_at: startsAt, maintenance_ends_at: endsAt } = machine;
  if (startsAt === null || endsAt === null || !isMaintenanceNear({ startsAt, endsAt }, now)) return undefined;
  return new Refusal(
    'MACHINE_IN_MAINTENANCE',
    'a maintenance window of the machine begins within an hour or has begun; choose another offer or try again after it',
    {
      next_maintenance: new Date(startsAt).toISOString(),
    },
  );
}

function exhaustedDisk({ machine }: OfferDetails, { choice }: PlannedDeploy): Refusal | undefined {
  const available = machine.disk_available_gb;
  if (choice.disk_gb <= available) return undefined;
  return new Refusal(
    'MACHINE_DISK_EXHAUSTED',
    `only ${available} GB of the machine's disk are free; request a smaller disk_gb or choose another offer`,
    {
      available_disk_gb: available,
      requested_disk_gb: choice.disk_gb,
    },
  );
}

function tooManyInstances({ payer: { live } }: PlannedDeploy): Refusal | undefined {
  if (live.length < INSTANCE_LIMIT) return undefined;
  return new Refusal('INSTANCE_LIMIT_REACHED', `the organization has ${live.length} instances; destroy one first`, {
    limit: INSTANCE_LIMIT,
  });
}

function uncoveredBurn(planned: PlannedDeploy): Refusal | undefined {
  const required = burnAfter(planned);
  return required === undefined ? undefined : refusalOfBalance(planned.payer.balanceMicro, required);
}

/** Of an offer that is not there, only what concerns anything is known. */
function usedUpCap(planned: PlannedDeploy): Refusal | undefined {
  const { live, caps, apiKeyId } = planned.payer;
  const rates = ratesOf(planned);
  return refusalOfCaps(caps, rates ? [...live, { ...rates, status: 'creating', apiKeyId, runKeyId: apiKeyId }] : live);
}

function tooNearOwnLimit(planned: PlannedDeploy): Refusal | undefined {
  const rates = ratesOf(planned);
  if (!rates) return undefined;
  const { stop_at = null, max_charge_micro = null } = planned.choice;
  const spent = { spend_micro: 0, price_per_hour_micro: rates.pricePerHourMicro };
  return refusalOfOwnLimit({ stop_at, max_charge_micro }, spent, planned.now, burnAfter(planned) ?? 0);
}

/** Looks again whether GPUs are free, if the offer is said to be available. */
function tooFewGpus(offer: OfferDetails): Refusal | undefined {
  const isFree = freeGpus(offer.gpus).length >= offer.num_gpus;
  return isFree || notOnMarket(offer) ? undefined : offerUnavailable();
}
