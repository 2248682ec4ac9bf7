import {
  CommandOutcome,
  WorkloadState,
  type CommandResult,
  type Gpu,
  type Heartbeat,
  type Hello,
  type InstanceState,
  type Progress,
  type SequenceFloor,
  type WorkloadReport,
} from '../../../shared/gen/gpurent/agent/v1/agent.js';
import { isPlausible } from '../../domain/command.js';
import { HEARTBEAT_MS } from '../../../shared/protocol.js';
import { restoredAt } from '../../store/meta.js';
import type { Row } from '../../store/schema.js';
import { listOf, query, sql } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import { noteAccess, refuseAccess } from '../instances/access.js';
import { dropClaims } from '../instances/claims.js';
import { findCommand, findOpenChange, sequenceOfChange, type CommandRow } from '../instances/commands.js';
import { NOTHING } from '../../../shared/observation.js';
import {
  MAX_WORDS_CHARS,
  addressesOf,
  endWorkload,
  failProvision,
  failStart,
  findInstanceOfMachine,
  isAlive,
  landCommand,
  sshOf,
} from '../instances/landing.js';
import { tellDisksBack } from '../instances/lost-disks.js';
import { gpusOf, type Instance } from '../instances/queries.js';
import { undoRefusedStart } from '../instances/start.js';
import { giveUpProvision } from '../instances/time-outs.js';
import { amend, recordEvent, recordHostEvent } from '../instances/transitions.js';
import { saveGpus, updateInventory } from './inventory.js';
import { judgeHeartbeat, judgeHello } from './host-judgement.js';
import { reviewKnown, reviewLive } from '../instances/host-review.js';
import { findGpus, findMachine } from './machines.js';
import { attestKnown, attestRunning } from '../money/attestation.js';
import { meterDisks } from '../money/disks.js';
import { chargeEndedRuns } from '../money/ended-runs.js';
import type { Platform } from '../platform.js';
import { landRemoval, observeSetApart, renumberRemoval, reviewUnknown, runsUnheardOf } from './quarantine.js';

const LATER_ORDERS =
  'the host has carried out later orders, which were lost when an older copy of the store was restored; destroy the instance and deploy again';
const SAY_AGAIN = 'this host runs a workload that the control plane has never heard of; it is to say again what it has';
const LAST_SEEN_GRAIN_MS = 60_000;
/** A heartbeat that comes so long after a change was gathered after it. */
const SURELY_LATER_MS = 2 * HEARTBEAT_MS;

export interface Greeting {
  floors: SequenceFloor[];
  /** The instances of which the host has a workload that the store has not heard of before. */
  quarantined: string[];
}

/**
 * A host has connected: records what it says of itself, compares what it has with the store, and sends everything open again.
 * Returns the sequence floors for its Welcome, and what it has that is new to quarantine. Refuses with VALIDATION_FAILED what no honest host would say, and with
 * MACHINE_NOT_FOUND.
 */
export function greetHost(platform: Platform, machineId: string, hello: Hello): Greeting {
  judgeHello(hello);
  return platform.store.transact((tx) => {
    // Also for a stream that was opened before an operator removed the machine.
    const machine = findMachine(tx, machineId);
    if (hello.inventory) updateInventory(tx, machineId, hello.inventory);
    const identity = {
      boot_id: hello.bootId,
      agent_version: hello.agentVersion,
      last_seen_at: tx.now,
      lost_at: null,
      // One that cannot see what it has has not been heard.
      is_ahead: hello.unseen ? machine.is_ahead : (0 as const),
    };
    tx.run(query.updateTable('machines').set(identity).where('id', '=', machineId));
    const quarantined = hello.unseen ? [] : review(platform, tx, machine, hello.instances);
    tx.run(
      query
        .updateTable('commands')
        .set({ next_send_at: tx.now })
        .where('machine_id', '=', machineId)
        .where('state', '=', 'open'),
    );
    tx.nudge('dispatch');
    return { floors: floorsOf(tx, machineId), quarantined };
  });
}

/** Compares what a host has seen of its workloads with the store. Returns the instances that are new to quarantine. */
function review(
  platform: Platform,
  tx: Tx,
  { id: machineId, is_ahead }: Row<'machines'>,
  instances: readonly InstanceState[],
): string[] {
  const restored = is_ahead ? restoredAt(tx) : undefined;
  const present = instances.filter(({ observation }) => observation?.state !== WorkloadState.WORKLOAD_STATE_ABSENT);
  const quarantined = reviewUnknown(platform, tx, machineId, present);
  reviewLive(tx, platform.ids, machineId, instances, restored);
  reviewKnown(tx, platform.ids, machineId, present);
  const held = new Set(present.map(({ instanceId }) => instanceId));
  meterDisks(tx, machineId, held);
  tellDisksBack(tx, machineId, held);
  return quarantined;
}

/** Below an instance's newest command nothing may run again, even on a host that lost its journal. */
function floorsOf(tx: Tx, machineId: string): SequenceFloor[] {
  const live = tx.all(
    query
      .selectFrom('instances')
      .leftJoin('commands', (join) =>
        join
          .onRef('commands.instance_id', '=', 'instances.id')
          .onRef('commands.machine_id', '=', 'instances.machine_id')
          .on('commands.state', '=', sql.lit('open')),
      )
      .select(['instances.id', 'instances.sequence', 'report_number', 'status', 'commands.id as command_id'])
      .where('instances.machine_id', '=', machineId)
      .where('status', '<>', sql.lit('destroyed')),
  );
  return live.map(({ id, sequence, report_number, status, command_id }) => ({
    instanceId: id,
    sequence,
    reportNumber: report_number,
    running: status === 'running',
    commandOpen: command_id !== null,
  }));
}

/** What a host answers to a command; ignored when the command is another host's, or closed. */
export function recordResult(platform: Platform, machineId: string, result: CommandResult): void {
  platform.store.transact((tx) => {
    // Also with an answer that nobody waits for any more: what has run is charged.
    const told = findInstanceOfMachine(tx, machineId, result.instanceId);
    if (told) chargeEndedRuns(tx, told, result.runs);
    const command = findCommand(tx, result.commandId);
    if (command?.machine_id !== machineId || command.state !== 'open') return;
    const instance = findInstanceOfMachine(tx, machineId, command.instance_id);
    if (!instance) return recordRemovalResult(tx, command, result);
    const answer = (kind: 'accepted' | 'refused') => {
      const message = result.message.slice(0, MAX_WORDS_CHARS);
      tx.afterCommit(() => platform.answers.deliver(command.id, { kind, message }));
    };
    switch (result.outcome) {
      case CommandOutcome.COMMAND_OUTCOME_ACCEPTED:
        tx.run(query.updateTable('commands').set({ accepted_at: tx.now }).where('id', '=', command.id));
        return answer('accepted');
      case CommandOutcome.COMMAND_OUTCOME_DONE:
        landCommand(tx, platform.ids, command, noteAccess(tx, instance, result), result.observation);
        return answer('accepted');
      case CommandOutcome.COMMAND_OUTCOME_REFUSED:
      case CommandOutcome.COMMAND_OUTCOME_FAILED:
        recordFailure(platform, tx, command, instance, result);
        return answer('refused');
      case CommandOutcome.COMMAND_OUTCOME_STALE:
        return overtake(platform, tx, command, instance, result.highestSequence);
      default:
        return;
    }
  });
}

/** A workload in quarantine has no other end than being removed: what is not done is sent again. */
function recordRemovalResult(tx: Tx, command: CommandRow, { outcome, highestSequence }: CommandResult): void {
  if (outcome === CommandOutcome.COMMAND_OUTCOME_DONE) return landRemoval(tx, command);
  const stale = outcome === CommandOutcome.COMMAND_OUTCOME_STALE && isPlausible(command, highestSequence);
  if (!stale || highestSequence < command.sequence) return;
  renumberRemoval(tx, command, highestSequence + 1);
}

function recordFailure(
  platform: Platform,
  tx: Tx,
  command: CommandRow,
  instance: Instance,
  result: CommandResult,
): void {
  const reason = { code: result.code.slice(0, 64), message: result.message.slice(0, MAX_WORDS_CHARS) };
  const refused = result.outcome === CommandOutcome.COMMAND_OUTCOME_REFUSED;
  switch (command.kind) {
    case 'provision':
      return failProvision(tx, command, instance, reason);
    case 'start':
      return refused
        ? undoRefusedStart(tx, platform.ids, instance, command, reason)
        : failStart(tx, platform.ids, command, instance, reason);
    case 'access':
      return refuseAccess(tx, instance, command, reason);
    default:
      // A stop or destroy has no other end than being done: it stays open and is sent again.
      return recordEvent(tx, instance.id, `${command.kind}_delayed`, reason.message);
  }
}

/**
 * The host has seen higher numbers than the store, which is an older copy then: the same command goes out above them. Only a
 * provision does not, for what was made and removed since is not made again.
 */
function overtake(platform: Platform, tx: Tx, command: CommandRow, instance: Instance, highest: number): void {
  if (!isPlausible(instance, highest) || highest < command.sequence) return;
  const renumbered = amend(tx, instance, { sequence: Math.max(instance.sequence, highest) + 1 });
  if (command.kind === 'provision') return giveUpProvision(tx, platform.ids, renumbered, LATER_ORDERS);
  tx.run(query.updateTable('commands').set({ sequence: renumbered.sequence }).where('id', '=', command.id));
}

/** A change that no command asked for. Applied once, if it is newer than the last one. */
export function recordReport(platform: Platform, machineId: string, report: WorkloadReport): void {
  platform.store.transact((tx) => {
    if (!report.observation) return;
    const found = findInstanceOfMachine(tx, machineId, report.instanceId);
    if (!found) return observeSetApart(tx, machineId, report.instanceId, report.observation);
    if (report.number <= found.report_number) return;
    const instance = chargeEndedRuns(tx, amend(tx, found, { report_number: report.number }), report.runs);
    if (report.note) recordEvent(tx, instance.id, 'note', report.note.slice(0, MAX_WORDS_CHARS));
    const { observation } = report;
    if (isAlive(observation)) {
      const ssh = sshOf(tx, instance, observation);
      const changes = { ...addressesOf(tx, instance, observation), ...ssh, run_id: observation.runId || null };
      if (instance.status === 'running') {
        amend(tx, instance, changes);
        if (instance.ssh_ready_at !== ssh.ssh_ready_at) recordEvent(tx, instance.id, 'ssh_ready', 'SSH answers');
      }
      return attestKnown(tx, instance.id, { runId: observation.runId, ms: observation.runningMs });
    }
    const command = findOpenChange(tx, instance);
    // An exit with an unfinished stop is that stop, landing; with an unfinished start, it has come up and ended.
    if (command && landsWith(tx, command, instance, report))
      landCommand(tx, platform.ids, command, instance, observation);
    else if (instance.status === 'running' && !command && endsRun(tx, instance, report)) {
      endWorkload(tx, instance, observation);
    }
  });
}

/**
 * Whether the workload that is known to be up has ended: its very run, or one that came after the newest command. A report of
 * an earlier run, come late, is none of this one.
 */
function endsRun(tx: Tx, instance: Instance, report: WorkloadReport): boolean {
  const { run_id } = instance;
  const { state, runId } = report.observation ?? { state: WorkloadState.WORKLOAD_STATE_UNSPECIFIED, runId: '' };
  const isThisRun = run_id === null || runId === run_id || report.sequence >= sequenceOfChange(tx, instance);
  return isThisRun || state === WorkloadState.WORKLOAD_STATE_ABSENT;
}

function landsWith(tx: Tx, command: CommandRow, instance: Instance, report: WorkloadReport): boolean {
  const { observation } = report;
  if (!observation) return false;
  switch (command.kind) {
    case 'stop':
    case 'release':
      return (instance.status === 'running' || instance.status === 'stopping') && endsRun(tx, instance, report);
    case 'provision':
    case 'start': {
      // What is not there has not come up, and what ended before was another run: the command is still to be answered.
      const hasEnded = observation.state === WorkloadState.WORKLOAD_STATE_STOPPED;
      return hasEnded && report.sequence >= command.sequence && observation.runId !== (instance.run_id ?? '');
    }
    case 'destroy':
    case 'access':
      return false;
  }
}

/** Tells the renter of a step; a host speaks of its own instances only. A step that goes on replaces what it said last. */
export function recordProgress(platform: Platform, machineId: string, progress: Progress): void {
  platform.store.transact((tx) => {
    const instance = findInstanceOfMachine(tx, machineId, progress.instanceId);
    if (!instance) return;
    // Only a provision may take as long as it goes on.
    if (instance.status === 'creating') amend(tx, instance, { progress_at: tx.now });
    if (progress.gpusFree) freeGpusOfDestroy(tx, instance);
    const [kind, message] = [progress.kind.slice(0, 64), progress.message.slice(0, MAX_WORDS_CHARS)];
    recordHostEvent(tx, instance.id, kind, message);
  });
}

/** A disk that Docker does not manage to remove keeps no GPU from others: its host has said that nothing can use them. */
function freeGpusOfDestroy(tx: Tx, instance: Instance): void {
  if (instance.status === 'destroying' && findOpenChange(tx, instance)?.kind === 'destroy') dropClaims(tx, instance.id);
}

/** What a host says is running, though the store knows that it is stopped, has ended or is destroyed. */
function overButRunning(tx: Tx, machineId: string, { running }: Heartbeat): InstanceState[] {
  const ids = running.map(({ instanceId }) => instanceId);
  const over = tx.all(
    query
      .selectFrom('instances')
      .select(['id', 'sequence', 'disk_gb as diskGb'])
      .where('machine_id', '=', machineId)
      .where('status', 'in', ['stopped', 'error', 'destroyed'])
      .where('status_changed_at', '<', tx.now - SURELY_LATER_MS)
      .where('id', 'in', listOf(ids)),
  );
  const observation = { ...NOTHING, state: WorkloadState.WORKLOAD_STATE_RUNNING };
  return over.map(({ id, sequence, diskGb }) => ({
    instanceId: id,
    sequence,
    observation,
    gpuUuids: gpusOf(tx, id),
    diskGb,
    origin: '',
  }));
}

/** Health of the host and its GPUs; written only when something has changed, and once a minute that it was heard. */
export function recordHeartbeat(platform: Platform, machineId: string, heartbeat: Heartbeat): void {
  judgeHeartbeat(heartbeat);
  platform.hosts.setDockerAvailable(machineId, heartbeat.dockerAvailable);
  platform.hosts.setDiskFree(machineId, heartbeat.diskFreeGb);
  platform.hosts.setObstacle(machineId, heartbeat.obstacle.slice(0, MAX_WORDS_CHARS));
  const runs = new Map(
    heartbeat.running.map(({ instanceId, runId, runningMs }) => [instanceId, { runId, ms: runningMs }]),
  );
  platform.hosts.setRunning(machineId, runs);
  platform.store.transact((tx) => {
    attestRunning(tx, machineId, runs);
    const ids = [...runs.keys()];
    // It says on connecting what it has, GPUs and all.
    if (runsUnheardOf(tx, machineId, ids)) tx.afterCommit(() => platform.hosts.close(machineId, SAY_AGAIN));
    reviewKnown(tx, platform.ids, machineId, overButRunning(tx, machineId, heartbeat));
    const present = findGpus(tx, machineId);
    const unchanged = (gpu: Gpu) => present.some((row) => row.uuid === gpu.uuid && (row.healthy === 1) === gpu.healthy);
    if (present.length !== heartbeat.gpus.length || !heartbeat.gpus.every(unchanged)) {
      saveGpus(tx, machineId, heartbeat.gpus);
    }
    tx.run(
      query
        .updateTable('machines')
        .set({ last_seen_at: tx.now })
        .where('id', '=', machineId)
        .where('last_seen_at', '<', tx.now - LAST_SEEN_GRAIN_MS),
    );
  });
}
