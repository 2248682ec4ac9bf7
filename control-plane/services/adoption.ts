import type { Observation } from '../../shared/gen/gpurent/agent/v1/agent.js';
import type { SessionCaller } from '../domain/caller.js';
import { Refusal } from '../domain/refusal.js';
import type { Row } from '../store/schema.js';
import { query } from '../store/sql.js';
import type { Tx } from '../store/store.js';
import { recordAudit } from './audit.js';
import { addressesOf } from './instances/landing.js';
import { insertInstance } from './instances/new-instance.js';
import { findInstance } from './instances/queries.js';
import { describeInstance, type InstanceDetails } from './instances/read.js';
import { recordEvent, transition } from './instances/transitions.js';
import { findGpus } from './machines.js';
import { describeOffer } from './offers.js';
import { getOrganization } from './organizations.js';
import type { Platform } from './platform.js';
import { getQuarantined, gpusHeld, stateOf } from './quarantine.js';
import { findTemplate } from './templates.js';

export interface Adoption {
  organization_id: string;
  template_id: string;
  /** An offer of the workload's machine: its prices hold from now on. */
  offer_id: string;
  disk_gb: number;
  label: string | null;
}

/**
 * Operators: makes a workload in quarantine the instance of an organisation, with the id under which its host knows it. The
 * container is left as it is; it is billed from now on. Refuses with QUARANTINE_NOT_FOUND, ORGANIZATION_NOT_FOUND,
 * TEMPLATE_NOT_FOUND, OFFER_NOT_FOUND, CAPACITY_UNAVAILABLE, INVALID_STATE.
 */
export function adopt(platform: Platform, operator: SessionCaller, id: string, request: Adoption): InstanceDetails {
  return platform.store.transact((tx) => {
    const workload = getQuarantined(tx, id);
    checkAdoptable(tx, workload);
    const organization = getOrganization(tx, request.organization_id);
    const template = findTemplate(tx, organization.id, request.template_id);
    const offer = describeOffer(platform, tx, findOfferOf(tx, workload.machine_id, request.offer_id));
    const gpus = gpusHeld(tx, id);
    checkGpus(tx, workload.machine_id, gpus);

    const owner = { organizationId: organization.id, deployedBy: operator.email, apiKeyId: null };
    const deployment = { request: { ...request, env_overrides: [] }, template, offer, sshKey: null, gpus };
    const identity = { id: workload.instance_id, sequence: workload.sequence };
    const created = insertInstance(platform, tx, owner, deployment, identity);
    recordEvent(tx, created.id, 'adopted', 'an operator has assigned this workload to the organization');
    const observation = JSON.parse(workload.observation) as Observation;
    const running = transition(tx, created, 'running', addressesOf(tx, created, observation));
    const instance =
      stateOf(workload.observation) === 'running'
        ? running
        : transition(tx, transition(tx, running, 'stopping'), 'stopped');
    tx.run(query.deleteFrom('quarantine').where('id', '=', id));
    recordAudit(tx, operator, 'quarantine.adopt', id, { instance_id: instance.id, organization_id: organization.id });
    return describeInstance(platform, tx, instance);
  });
}

function checkAdoptable(tx: Tx, workload: Row<'quarantine'>): void {
  if (workload.removal_requested_at !== null) throw new Refusal('INVALID_STATE', 'this workload is being removed');
  if (findInstance(tx, workload.instance_id)) {
    throw new Refusal('INVALID_STATE', 'an instance with this id exists on another machine; remove this workload');
  }
}

function findOfferOf(tx: Tx, machineId: string, id: string): Row<'offers'> {
  const offer = tx.get(query.selectFrom('offers').selectAll().where('id', '=', id).where('machine_id', '=', machineId));
  if (!offer) throw new Refusal('OFFER_NOT_FOUND', "no offer of this workload's machine has this id");
  return offer;
}

function checkGpus(tx: Tx, machineId: string, gpus: readonly string[]): void {
  const known = findGpus(tx, machineId);
  const free = gpus.every((uuid) => known.some((gpu) => gpu.uuid === uuid && gpu.instance_id === null));
  if (!free) throw new Refusal('CAPACITY_UNAVAILABLE', 'an instance of the store holds a GPU of this workload');
}
