import { MINUTE_MS } from '../../../shared/time.js';
import { GRACE_MS } from '../../domain/deadlines.js';
import { OPERATORS } from '../../domain/event.js';
import { compileOnce, query, sql, updateRows } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import { recordEvent, recordInstanceEvent } from '../events/record.js';
import { stuckCommands, stuckCutoff } from '../instances/stuck-commands.js';
import { nameOfMachine } from '../machines/machines.js';
import type { Platform } from '../system/platform.js';
import { Absences } from './absences.js';
import { ObstacleEvents } from './obstacle-events.js';

const EVERY_MS = 15_000;
/** Shortest time between two events of one GPU, for one that comes and goes. */
const GPU_AGAIN_MS = 10 * MINUTE_MS;
/** Most events of one kind in one run, so that no host can push everything else out of the operators' stream. */
const MOST = { stuck: 50, gpus: 50, disputed: 20, quarantined: 20 };

/**
 * Makes the worker that tells operators of machines that are away or back or take nothing new, of GPUs and whose they are, of commands that are stuck, and of
 * workloads in quarantine. It looks every 15 seconds. Nothing is told in the first two minutes of a control plane, while hosts connect
 * again. Returns the number of events.
 */
export function operatorTellerOf(platform: Platform): () => { told: number } {
  const absences = new Absences(platform);
  const obstacles = new ObstacleEvents(platform);
  let dueAt = 0;
  return () => {
    const now = platform.clock.monotonic();
    if (now < dueAt || now - platform.bootedAt < GRACE_MS) return { told: 0 };
    platform.connections.noteSilence();
    const { told, goesOn } = absences.tell(now);
    dueAt = goesOn ? now : now + EVERY_MS;
    return { told: told + obstacles.tell(now) + tellOfOthers(platform) };
  };
}

function tellOfOthers({ store, clockSteps }: Platform): number {
  return store.transact((tx) => {
    const stuck = clockSteps.isTrusted() ? findStuck(tx) : [];
    for (const command of stuck) tellOfStuck(tx, command);
    const gpus = findChangedGpus(tx);
    for (const gpu of gpus) tellOfGpu(tx, gpu);
    const disputed = tx.all(newlyDisputed({}));
    for (const gpu of disputed) tellOfDisputed(tx, gpu);
    const quarantined = findUntold(tx);
    for (const workload of quarantined) tellOfQuarantined(tx, workload);
    return stuck.length + gpus.length + disputed.length + quarantined.length;
  });
}

type Stuck = ReturnType<typeof findStuck>[number];

function findStuck(tx: Tx) {
  return tx.all(newlyStuck({ cutoff: stuckCutoff(tx.now) }));
}

const newlyStuck = compileOnce(({ cutoff }: { cutoff: number }) =>
  stuckCommands(cutoff)
    .select(['commands.id', 'commands.instance_id', 'commands.machine_id', 'commands.kind', 'commands.created_at'])
    .where('commands.stuck_since', 'is', null)
    .orderBy('commands.created_at')
    .limit(sql.lit(MOST.stuck)),
);

function tellOfStuck(tx: Tx, { id, instance_id, machine_id, kind, created_at }: Stuck): void {
  tx.run(updateRows('commands', { stuck_since: tx.now }, { id }));
  const since = new Date(created_at).toISOString();
  const data = { ...nameOfMachine(tx, machine_id), instance_id, command_id: id, command: kind, since };
  recordEvent(tx, OPERATORS, 'command.stuck', `instances/${instance_id}`, data);
}

type ChangedGpu = ReturnType<typeof findChangedGpus>[number];

function findChangedGpus(tx: Tx) {
  return tx.all(changedGpus({ toldBefore: tx.now - GPU_AGAIN_MS }));
}

const changedGpus = compileOnce(({ toldBefore }: { toldBefore: number }) =>
  query
    .selectFrom('gpus')
    .select(['machine_id', 'uuid', 'healthy', 'reason', 'told_at'])
    .where('healthy', '<>', sql.ref<0 | 1>('told_healthy'))
    .where((eb) => eb.or([eb('told_at', 'is', null), eb('told_at', '<=', toldBefore)]))
    .limit(sql.lit(MOST.gpus)),
);

function tellOfGpu(tx: Tx, { machine_id, uuid: gpu_uuid, healthy, reason, told_at }: ChangedGpu): void {
  tx.run(updateRows('gpus', { told_healthy: healthy, told_at: tx.now }, { machine_id, uuid: gpu_uuid }));
  const data = { ...nameOfMachine(tx, machine_id), gpu_uuid };
  const subject = `machines/${machine_id}`;
  const claim = tx.get(claimOf({ machine_id, gpu_uuid }));
  if (healthy === 1) {
    recordEvent(tx, OPERATORS, 'gpu.healthy', subject, data);
    // Whoever has got the GPU since then was not told that it was unhealthy.
    if (claim && told_at !== null && claim.claimed_at <= told_at) tellRenterOfHealthy(tx, claim.instance_id, gpu_uuid);
    return;
  }
  recordEvent(tx, OPERATORS, 'gpu.unhealthy', subject, { ...data, reason });
  if (claim) tellRenterOfUnhealthy(tx, claim.instance_id, { gpu_uuid, reason });
}

function tellRenterOfHealthy(tx: Tx, instanceId: string, gpu_uuid: string): void {
  const message = `the host reports that the GPU ${gpu_uuid} is healthy again`;
  recordInstanceEvent(tx, instanceId, 'instance.gpu_healthy', { kind: 'gpu_healthy', message }, { gpu_uuid });
}

function tellRenterOfUnhealthy(tx: Tx, instanceId: string, gpu: { gpu_uuid: string; reason: string | null }): void {
  const { gpu_uuid, reason } = gpu;
  const message = `the host reports that the GPU ${gpu_uuid} is unhealthy${reason === null ? '' : ` (${reason})`}; the instance runs on and is charged: ask the operator, or destroy it`;
  const told = { kind: 'gpu_unhealthy', message };
  recordInstanceEvent(tx, instanceId, 'instance.gpu_unhealthy', told, { gpu_uuid, reason });
}

const claimOf = compileOnce(({ machine_id, gpu_uuid }: { machine_id: string; gpu_uuid: string }) =>
  query
    .selectFrom('gpu_claims')
    .select(['instance_id', 'claimed_at'])
    .where('machine_id', '=', machine_id)
    .where('gpu_uuid', '=', gpu_uuid),
);

/** Selects the GPUs that a machine reports and another one has. A dispute with the same machine is told once. */
const newlyDisputed = compileOnce(() =>
  query
    .selectFrom('gpus')
    .innerJoin('machines', 'machines.id', 'gpus.machine_id')
    .innerJoin('gpus as owned', (join) => join.onRef('owned.uuid', '=', 'gpus.uuid').on('owned.owned', '=', sql.lit(1)))
    .select(['gpus.machine_id', 'gpus.uuid', 'owned.machine_id as owner_id'])
    .where('gpus.present', '=', sql.lit(1))
    .where('gpus.owned', '=', sql.lit(0))
    .where('machines.removed_at', 'is', null)
    .where('gpus.told_owner', 'is not', sql.ref<string>('owned.machine_id'))
    .limit(sql.lit(MOST.disputed)),
);

interface Disputed {
  machine_id: string;
  uuid: string;
  owner_id: string;
}

function tellOfDisputed(tx: Tx, { machine_id, uuid, owner_id }: Disputed): void {
  tx.run(updateRows('gpus', { told_owner: owner_id }, { machine_id, uuid }));
  const owner = nameOfMachine(tx, owner_id);
  const owned = { owner_machine_id: owner.machine_id, owner_machine_name: owner.machine_name };
  const data = { ...nameOfMachine(tx, machine_id), gpu_uuid: uuid, ...owned };
  recordEvent(tx, OPERATORS, 'gpu.disputed', `machines/${machine_id}`, data);
}

type Untold = ReturnType<typeof findUntold>[number];

function findUntold(tx: Tx) {
  return tx.all(untold({}));
}

const untold = compileOnce(() =>
  query
    .selectFrom('quarantine')
    .select(['id', 'machine_id', 'instance_id'])
    .where('told', '=', sql.lit(0))
    .orderBy('found_at')
    .limit(sql.lit(MOST.quarantined)),
);

function tellOfQuarantined(tx: Tx, { id, machine_id, instance_id }: Untold): void {
  tx.run(updateRows('quarantine', { told: 1 }, { id }));
  const data = { ...nameOfMachine(tx, machine_id), quarantine_id: id, instance_id };
  recordEvent(tx, OPERATORS, 'workload.quarantined', `quarantine/${id}`, data);
}
