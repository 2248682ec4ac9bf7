import { WorkloadState, type InstanceState, type Observation } from '../../../shared/gen/gpurent/agent/v1/agent.js';
import type { Operator } from '../../domain/caller.js';
import { Refusal } from '../../domain/refusal.js';
import type { Row } from '../../store/schema.js';
import { compileOnce, insertRow, listOf, query, sql } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import { NOTHING } from '../../../shared/observation.js';
import { recordAudit } from '../system/audit.js';
import { finishCommand, recordRemoval } from '../instances/commands.js';
import { pageOf, type Page, type PageRequest } from '../system/pages.js';
import type { Core } from '../system/platform.js';
import { visibleTemplate } from '../catalogue/templates.js';
import { MAX_ORIGIN_CHARS, openOrigin, type Origin } from '../instances/origin.js';
import { isAlive } from './observations.js';

/** The origin of a workload. All null if an older release made the workload, or the secret key was exchanged since. */
interface KnownOrigin {
  organization_id: string | null;
  organization_name: string | null;
  template_id: string | null;
  template_name: string | null;
  offer_id: string | null;
  label: string | null;
  ssh_public_key: string | null;
}

export type QuarantinedWorkload = Omit<Row<'quarantine'>, 'observation' | 'origin'> &
  KnownOrigin & {
    machine_name: string;
    state: 'running' | 'stopped';
    gpu_uuids: string[];
    /** The image of the workload, as its host reports it, or null. */
    image: string | null;
  };

/** The fields of an observation that are stored. */
type Found = Pick<
  Observation,
  'state' | 'runId' | 'sshPort' | 'sshSilent' | 'sshHostKey' | 'jupyterUrl' | 'openUrl' | 'image'
>;

/**
 * Puts workloads that the database does not know into quarantine, with their GPUs and disks. They are never removed on their own,
 * because the database can be an older copy. A workload that the host no longer has leaves quarantine, unless its removal is under
 * way. Returns the ids of workloads that were not in quarantine before.
 */
export function reconcileUnknown(tx: Tx, machineId: string, present: readonly InstanceState[]): string[] {
  const unknown = present.filter(({ instanceId }) => !isKnown(tx, machineId, instanceId));
  const names = unknown.map(({ instanceId }) => instanceId);
  const before = new Set(quarantinedOn(tx, machineId));
  if (before.size > 0) dropGone(tx, machineId, names);
  const added = names.filter((id) => !before.has(id));
  for (const state of unknown) quarantine(tx, machineId, state);
  return added;
}

/** Removes workloads from quarantine that the host no longer has, unless their removal is under way. */
function dropGone(tx: Tx, machineId: string, present: readonly string[]): void {
  tx.run(
    query
      .deleteFrom('quarantine')
      .where('machine_id', '=', machineId)
      .where('removal_requested_at', 'is', null)
      .where('instance_id', 'not in', listOf(present)),
  );
}

/** Returns the instance ids of the workloads of a machine that are in quarantine. */
export function quarantinedOn(tx: Tx, machineId: string): string[] {
  return tx.all(quarantinedWorkloads({ machineId })).map(({ instance_id }) => instance_id);
}

const quarantinedWorkloads = compileOnce(({ machineId }: { machineId: string }) =>
  query.selectFrom('quarantine').select('instance_id').where('machine_id', '=', machineId),
);

function isKnown(tx: Tx, machineId: string, instanceId: string): boolean {
  return tx.get(knownInstance({ machineId, instanceId })) !== undefined;
}

const knownInstance = compileOnce(({ machineId, instanceId }: { machineId: string; instanceId: string }) =>
  query.selectFrom('instances').select('id').where('id', '=', instanceId).where('machine_id', '=', machineId),
);

function quarantine(tx: Tx, machineId: string, state: InstanceState): void {
  const { sequence, instanceId, diskGb: disk_gb } = state;
  const origin = state.origin.length > MAX_ORIGIN_CHARS ? null : state.origin || null;
  const seen = { sequence, disk_gb, origin, observation: sightOf(state.observation) };
  const row = tx.get(setApart({ id: tx.id(), machine_id: machineId, instance_id: instanceId, at: tx.now, ...seen }));
  if (!row) return;
  tx.run(dropGpus({ id: row.id }));
  for (const gpu_uuid of new Set(state.gpuUuids))
    tx.run(insertRow('quarantine_gpus', { quarantine_id: row.id, gpu_uuid }));
}

type SetApart = Pick<
  Row<'quarantine'>,
  'id' | 'machine_id' | 'instance_id' | 'sequence' | 'disk_gb' | 'origin' | 'observation'
> & { at: number };

// Compiled once: a host can name a thousand workloads at once, and everybody waits until all of them are stored.
const setApart = compileOnce(({ at, ...row }: SetApart) =>
  query
    .insertInto('quarantine')
    .values({ ...row, found_at: at, removal_requested_at: null })
    .onConflict((conflict) =>
      conflict.columns(['machine_id', 'instance_id']).doUpdateSet({
        observation: sql`excluded.observation`,
        disk_gb: sql`excluded.disk_gb`,
        origin: sql`excluded.origin`,
        sequence: sql`max(quarantine.sequence, excluded.sequence)`,
      }),
    )
    .returning('id'),
);

const dropGpus = compileOnce(({ id }: { id: string }) =>
  query.deleteFrom('quarantine_gpus').where('quarantine_id', '=', id),
);

/** Stores a later observation of a workload in quarantine. */
export function observeQuarantined(tx: Tx, machineId: string, instanceId: string, observation: Observation): void {
  tx.run(
    query
      .updateTable('quarantine')
      .set({ observation: sightOf(observation) })
      .where('machine_id', '=', machineId)
      .where('instance_id', '=', instanceId),
  );
}

/** Lists the workloads in quarantine for an operator, newest first. */
export function listQuarantine(core: Core, request: PageRequest): Page<QuarantinedWorkload> {
  const all = query
    .selectFrom('quarantine')
    .innerJoin('machines', 'machines.id', 'quarantine.machine_id')
    .selectAll('quarantine')
    .select('machines.name as machine_name')
    .select(sql<number>`quarantine.rowid`.as('position'));
  return core.store.transact((tx) => {
    const { items, ...rest } = pageOf(tx, all, request, {
      by: { found_at: 'desc', 'quarantine.rowid': 'desc' },
      keyOf: ({ found_at, position }) => [found_at, position],
    });
    const workloads = items.map(({ observation, origin, position: _, ...row }) => ({
      ...row,
      ...describeOrigin(tx, openOrigin(core.encryption, origin, row.instance_id)),
      state: stateOf(observation),
      image: readSight(observation).image || null,
      gpu_uuids: gpusHeld(tx, row.id),
    }));
    return { ...rest, items: workloads };
  });
}

function describeOrigin(tx: Tx, origin: Origin | undefined): KnownOrigin {
  const { organization_id = null, template_id = null, offer_id = null, label = null } = origin ?? {};
  return {
    organization_id,
    organization_name: nameOf(tx, organization_id),
    template_id,
    template_name: organization_id === null ? null : nameOfTemplate(tx, organization_id, template_id),
    offer_id,
    label,
    ssh_public_key: origin?.ssh_public_key || null,
  };
}

/** Returns the name of a template, if the organization can still have it; otherwise null. */
function nameOfTemplate(tx: Tx, organizationId: string, id: string | null): string | null {
  return id === null ? null : (tx.get(visibleTemplate(organizationId, id))?.name ?? null);
}

/** Returns the name of an organization; null if the id is null or unknown. */
function nameOf(tx: Tx, id: string | null): string | null {
  return tx.get(query.selectFrom('organizations').select('name').where('id', '=', id))?.name ?? null;
}

function sightOf(observation: Observation | undefined): string {
  const {
    state = WorkloadState.WORKLOAD_STATE_STOPPED,
    runId = '',
    sshPort = 0,
    sshSilent = true,
    sshHostKey = '',
    jupyterUrl = '',
    openUrl = '',
    image = '',
  } = observation ?? {};
  const short = (text: string) => (text.length <= MAX_TEXT_CHARS ? text : '');
  const links = { jupyterUrl: short(jupyterUrl), openUrl: short(openUrl) };
  const ssh = { sshPort, sshSilent, sshHostKey: short(sshHostKey) };
  const sight: Found = { state, runId: short(runId), image: short(image), ...ssh, ...links };
  return JSON.stringify(sight);
}

const MAX_TEXT_CHARS = 512;

/** Parses the stored observation of a workload in quarantine. */
export function readSight(stored: string): Observation {
  const state = WorkloadState.WORKLOAD_STATE_STOPPED;
  // An earlier release has not stored whether SSH answers: the next report says it.
  return { ...NOTHING, sshSilent: true, state, ...(JSON.parse(stored) as Partial<Found>) };
}

/** Returns the state in a stored observation. */
export function stateOf(observation: string): QuarantinedWorkload['state'] {
  return isAlive(readSight(observation)) ? 'running' : 'stopped';
}

export function gpusHeld(tx: Tx, quarantineId: string): string[] {
  return tx
    .all(
      query
        .selectFrom('quarantine_gpus')
        .select('gpu_uuid')
        .where('quarantine_id', '=', quarantineId)
        .orderBy('gpu_uuid'),
    )
    .map(({ gpu_uuid }) => gpu_uuid);
}

export function getQuarantined(tx: Tx, id: string): Row<'quarantine'> {
  const row = tx.get(query.selectFrom('quarantine').selectAll().where('id', '=', id));
  if (!row) throw new Refusal('QUARANTINE_NOT_FOUND', 'no workload in quarantine has this id');
  return row;
}

/**
 * Commands, for an operator, the removal of a quarantined workload with its disk. It leaves quarantine and its GPUs are free once the
 * host has confirmed. Refuses with QUARANTINE_NOT_FOUND.
 */
export function removeQuarantined(core: Core, operator: Operator, id: string): void {
  core.store.transact((tx) => {
    const row = getQuarantined(tx, id);
    const { sequence } = recordRemoval(tx, row);
    tx.run(query.updateTable('quarantine').set({ removal_requested_at: tx.now, sequence }).where('id', '=', id));
    recordAudit(tx, operator, 'quarantine.remove', id, { machine_id: row.machine_id, instance_id: row.instance_id });
  });
}

/** Applies a host's confirmation that it has removed a quarantined workload. */
export function applyRemoved(tx: Tx, command: Row<'commands'>): void {
  finishCommand(tx, command, 'done');
  tx.run(
    query
      .deleteFrom('quarantine')
      .where('machine_id', '=', command.machine_id)
      .where('instance_id', '=', command.instance_id),
  );
}

/** Gives a removal a higher sequence, because its host has already seen the present one. It is sent again. */
export function renumberRemoval(tx: Tx, command: Row<'commands'>, sequence: number): void {
  tx.run(query.updateTable('commands').set({ sequence }).where('id', '=', command.id));
  tx.run(
    query
      .updateTable('quarantine')
      .set({ sequence })
      .where('machine_id', '=', command.machine_id)
      .where('instance_id', '=', command.instance_id),
  );
}
