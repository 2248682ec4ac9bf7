import type { HasHostBudgets } from '../events/host-budget.js';
import { WorkloadState, type Progress, type WorkloadReport } from '../../../shared/gen/gpurent/agent/v1/agent.js';
import type { Tx } from '../../store/store.js';
import { dropClaims } from '../instances/claims.js';
import { findOpenChange, sequenceOfChange, type CommandRow } from '../instances/commands.js';
import { endWorkload, applyDone, runIdOf } from './command-outcomes.js';
import type { Instance } from '../instances/queries.js';
import { noteImageRequirements } from '../instances/image-requirements.js';
import { amend, noteProgress } from '../instances/transitions.js';
import { recordUsageOfKnownRun } from '../metering/usage-reports.js';
import { chargeEndedRuns } from './ended-runs.js';
import type { Core } from '../system/platform.js';
import { observeQuarantined } from './quarantine.js';
import { recordHostEvent, recordHostNote, recordNote } from '../events/timeline.js';
import { MAX_WORDS_CHARS, addressesOf, findInstanceOfMachine, isAlive, sshOf } from './observations.js';

/** Applies a report of a change that no command asked for, once, if its number is higher than the last one's. */
export function recordReport(core: Core & HasHostBudgets, machineId: string, report: WorkloadReport): void {
  core.store.transact((tx) => {
    if (!report.observation) return;
    const found = findInstanceOfMachine(tx, machineId, report.instanceId);
    if (!found) return observeQuarantined(tx, machineId, report.instanceId, report.observation);
    if (report.number <= found.report_number) return;
    const instance = chargeEndedRuns(tx, amend(tx, found, { report_number: report.number }), report.runs);
    if (report.note) {
      const note = { kind: 'note', message: report.note.slice(0, MAX_WORDS_CHARS) } as const;
      recordHostNote(core, tx, instance.id, note);
    }
    const { observation } = report;
    if (isAlive(observation)) {
      const ssh = sshOf(tx, instance, observation);
      const changes = { ...addressesOf(tx, instance, observation), ...ssh, run_id: runIdOf(observation) };
      if (instance.status === 'running') {
        amend(tx, instance, changes);
        if (instance.ssh_ready_at !== ssh.ssh_ready_at) recordNote(tx, instance.id, 'ssh_ready', 'SSH answers');
      }
      return recordUsageOfKnownRun(tx, instance.id, { runId: observation.runId, ms: observation.runningMs });
    }
    const command = findOpenChange(tx, instance);
    // While a stop is open, an exit is the effect of that stop. While a start is open, the workload has come up and ended.
    if (command && landsWith(tx, command, instance, report)) applyDone(tx, command, instance, observation);
    else if (instance.status === 'running' && !command && endsRun(tx, instance, report)) {
      endWorkload(tx, instance, observation);
    }
  });
}

/**
 * Tells whether a report ends the run that is known to be up: it names that run, or is not older than the newest command, or the
 * workload is absent. A late report of an earlier run does not.
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
      // An absent workload has not come up, and an exit with an earlier sequence or the known run id is of an earlier run: in both
      // cases the command is not answered yet.
      const hasEnded = observation.state === WorkloadState.WORKLOAD_STATE_STOPPED;
      return hasEnded && report.sequence >= command.sequence && observation.runId !== (instance.run_id ?? '');
    }
    case 'destroy':
    case 'access':
      return false;
  }
}

/**
 * Records a host's progress event for the renter, if the instance is on that host's machine.
 */
export function recordProgress(core: Core & HasHostBudgets, machineId: string, progress: Progress): void {
  core.store.transact((tx) => {
    const instance = findInstanceOfMachine(tx, machineId, progress.instanceId);
    if (!instance) return;
    noteProgress(tx, instance);
    if (progress.pulled) noteImageRequirements(tx, instance, progress.pulled);
    if (progress.gpusFree) freeGpusOfDestroy(tx, instance);
    const [kind, message] = [progress.kind.slice(0, 64), progress.message.slice(0, MAX_WORDS_CHARS)];
    recordHostEvent(core, tx, instance.id, { kind, message });
  });
}

/** Frees the GPUs of a destroy that waits only for its disk: the host has reported that nothing can use them any more. */
function freeGpusOfDestroy(tx: Tx, instance: Instance): void {
  if (instance.status === 'destroying' && findOpenChange(tx, instance)?.kind === 'destroy') dropClaims(tx, instance.id);
}
