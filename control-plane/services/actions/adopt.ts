import { anOperator } from '../../domain/act.js';
import type { Operator } from '../../domain/caller.js';
import { Refusal, invalidField } from '../../domain/refusal.js';
import type { Row } from '../../store/schema.js';
import { query, rowById } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import { lookAtSuspension } from '../organizations/suspension.js';
import { recordAct } from '../system/acts.js';
import { recordAudit } from '../system/audit.js';
import { findOpenCommand } from '../instances/commands.js';
import { checkTemplate } from './deploy-checks.js';
import { renewAccess } from '../instances/access.js';
import { insertInstance } from '../instances/new-instance.js';
import { findInstance } from '../instances/queries.js';
import { describeInstance, type InstanceDetails } from './instance-details.js';
import { considerRelease } from '../instances/release.js';
import { transition } from '../instances/transitions.js';
import { findGpus } from '../machines/machines.js';
import { describeOffer, type OfferDetails } from '../catalogue/offer-details.js';
import { getOrganization } from '../organizations/organizations.js';
import type { Platform } from '../system/platform.js';
import { openOrigin, type Origin } from '../instances/origin.js';
import { getQuarantined, gpusHeld, readSight, stateOf } from '../reconciler/quarantine.js';
import { findTemplate } from '../catalogue/templates.js';
import { recordTransition } from '../events/timeline.js';
import { addressesOf, sshOf } from '../reconciler/observations.js';

/** The `deployed_by` of an adopted instance: the address of the operator is nothing for its renter. */
const ADOPTER = 'operator';

/** The terms of an adoption. Absent fields are as the workload was deployed; without an offer, so are the prices. */
export interface Adoption {
  organization_id?: string;
  template_id?: string;
  /** An offer of the workload's machine, whose prices hold from now on. */
  offer_id?: string;
  disk_gb?: number;
  label?: string | null;
}

const ADOPTED = { kind: 'adopted', message: 'an operator has assigned this workload to the organization' } as const;
const FOUND_RUNNING = { kind: 'running', message: 'the workload is up on its host' } as const;
const WAS_RUNNING = { kind: 'running', message: 'the workload has run on its host' } as const;
const WENT_DOWN = { kind: 'stop_requested', message: 'the workload is down on its host' } as const;
const FOUND_STOPPED = { kind: 'stopped', message: 'the workload is down on its host, its disk is kept' } as const;

/**
 * Makes, for an operator, a workload in quarantine an instance of an organization. The instance gets the id that the host knows. The
 * container stays as it is and is charged from now on. Its limits are those of the deploy: what was changed since, nobody knows, so it is
 * never destroyed by one, and a schedule is lost. If the workload has an origin, the host gets a new access token, because
 * nobody knows the earlier one. Refuses with QUARANTINE_NOT_FOUND, ORGANIZATION_NOT_FOUND, TEMPLATE_NOT_FOUND, like
 * {@link checkTemplate}, with OFFER_NOT_FOUND, CAPACITY_UNAVAILABLE, HOST_UNREACHABLE, INVALID_STATE, and with
 * VALIDATION_FAILED for a template of another kind, an offer of another size or a disk that does not fit.
 */
export function adopt(platform: Platform, operator: Operator, id: string, given: Adoption): InstanceDetails {
  return platform.store.transact((tx) => {
    const workload = getQuarantined(tx, id);
    checkAdoptable(platform, tx, workload);
    const origin = openOrigin(platform.encryption, workload.origin, workload.instance_id);
    const request = completed(given, origin);
    const organization = getOrganization(tx, request.organization_id);
    const template = findTemplate(tx, organization.id, request.template_id);
    checkTemplate(template, organization.id);
    checkKind(tx, template, origin);
    const present = describeOffer(platform, tx, findOfferOf(tx, workload.machine_id, request.offer_id));
    const offer = given.offer_id === undefined && origin ? { ...present, ...pricesOf(origin) } : present;
    const gpus = gpusHeld(tx, id);
    checkGpus(tx, offer, gpus);
    checkDisk(offer, request.disk_gb, workload.disk_gb);

    // The label, the limits and the keys are those of its own organization.
    const own = origin?.organization_id === organization.id ? origin : undefined;
    const owner = { organizationId: organization.id, deployedBy: ADOPTER, apiKeyId: knownKey(tx, own) };
    const { stop_at = null, max_charge_micro = null, idle_stop_minutes = null } = own ?? {};
    const limits = { stop_at, max_charge_micro, idle_stop_minutes };
    const sshKey = own?.ssh_public_key ? { public_key: own.ssh_public_key } : null;
    const label = (given.label === undefined ? own?.label : given.label) ?? null;
    const deployment = { request: { ...request, label, ...limits, env_overrides: [] }, template, offer, sshKey, gpus };
    const identity = { id: workload.instance_id, sequence: workload.sequence };
    const created = insertInstance(platform, tx, owner, deployment, identity);
    recordTransition(tx, created, null, ADOPTED);
    const observation = readSight(workload.observation);
    const isUp = stateOf(workload.observation) === 'running';
    const seen = { ...addressesOf(tx, created, observation), ...sshOf(tx, created, observation) };
    const running = transition(tx, created, 'running', isUp ? FOUND_RUNNING : WAS_RUNNING, seen);
    const stop = () => transition(tx, transition(tx, running, 'stopping', WENT_DOWN), 'stopped', FOUND_STOPPED);
    const instance = isUp ? running : considerRelease(tx, stop());
    tx.run(query.deleteFrom('quarantine').where('id', '=', id));
    const accessible = origin ? renewAccess(tx, instance) : instance;
    recordAudit(tx, operator, 'quarantine.adopt', id, { instance_id: instance.id, organization_id: organization.id });
    recordAct(tx, organization.id, anOperator(null), 'instance.adopt', `instances/${instance.id}`);
    lookAtSuspension(tx, organization.id);
    return describeInstance(platform, tx, accessible);
  });
}

/** Returns the API key that has deployed a workload; null: none has, or the database does not know it. */
function knownKey(tx: Tx, origin: Origin | undefined): string | null {
  const key = origin?.api_key_id ? tx.get(rowById('api_keys', origin.api_key_id)) : undefined;
  return key && key.organization_id === origin?.organization_id ? key.id : null;
}

function pricesOf({ price_per_hour_micro, storage_price_per_gb_hour_micro, release_stopped_after_ms }: Origin) {
  return { price_per_hour_micro, storage_price_per_gb_hour_micro, release_stopped_after_ms };
}

/**
 * Completes the terms from the sealed origin. The size of the disk never comes from the host's report, because the renter is charged
 * by it.
 */
function completed(given: Adoption, origin: Origin | undefined): Omit<Required<Adoption>, 'label'> {
  const known = { ...origin, ...given };
  const required = <Field extends 'organization_id' | 'template_id' | 'offer_id' | 'disk_gb'>(field: Field) => {
    const value = known[field];
    if (value === undefined) throw invalidField(field, 'is required: the workload has no origin that contains it');
    return value as NonNullable<typeof value>;
  };
  return {
    organization_id: required('organization_id'),
    template_id: required('template_id'),
    offer_id: required('offer_id'),
    disk_gb: required('disk_gb'),
  };
}

function checkAdoptable(platform: Platform, tx: Tx, workload: Row<'quarantine'>): void {
  const { instance_id: id, machine_id } = workload;
  if (!platform.connections.isConnected(machine_id)) {
    throw new Refusal(
      'HOST_UNREACHABLE',
      'the machine of this workload is not connected, so its state is unknown; try again when it is',
    );
  }
  if (workload.removal_requested_at !== null || findOpenCommand(tx, { id, machine_id })) {
    throw new Refusal('INVALID_STATE', 'this workload is being removed');
  }
  if (findInstance(tx, id)) {
    throw new Refusal('INVALID_STATE', 'an instance with this id exists on another machine; remove this workload');
  }
}

/** Refuses a virtual machine for a container, and the reverse. Without an origin, nobody knows what the workload is. */
function checkKind(tx: Tx, { kind }: Pick<Row<'templates'>, 'kind'>, origin: Origin | undefined): void {
  const deployed = origin && tx.get(rowById('templates', origin.template_id));
  if (!deployed || deployed.kind === kind) return;
  const its = deployed.kind === 'vm' ? 'virtual machine' : 'container';
  throw invalidField('template_id', `the workload is a ${its}; choose a template of that kind`);
}

function findOfferOf(tx: Tx, machineId: string, id: string): Row<'offers'> {
  const offer = tx.get(query.selectFrom('offers').selectAll().where('id', '=', id).where('machine_id', '=', machineId));
  if (!offer) throw new Refusal('OFFER_NOT_FOUND', "no offer of this workload's machine has this id");
  return offer;
}

function checkGpus(tx: Tx, { machine, num_gpus }: OfferDetails, gpus: readonly string[]): void {
  if (gpus.length !== num_gpus) {
    throw invalidField(
      'offer_id',
      `the offer has ${num_gpus} GPU(s), but the workload holds ${gpus.length}; choose another offer of the machine`,
    );
  }
  const known = findGpus(tx, machine.id);
  const free = gpus.every((uuid) => known.some((gpu) => gpu.uuid === uuid && gpu.instance_id === null));
  if (!free) throw new Refusal('CAPACITY_UNAVAILABLE', 'another instance holds a GPU of this workload');
}

function checkDisk({ machine }: OfferDetails, disk_gb: number, held: number): void {
  const available = machine.disk_available_gb + held;
  if (disk_gb <= available) return;
  throw invalidField('disk_gb', `must be at most ${available}: the machine's disk has no more free space`);
}
