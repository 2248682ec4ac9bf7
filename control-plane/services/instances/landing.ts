import { WorkloadState, type Exit, type Observation } from '../../../shared/gen/gpurent/agent/v1/agent.js';
import type { InstanceErrorCode } from '../../domain/instance-codes.js';
import { instancePorts } from '../../domain/template-port.js';
import { workloadLink } from '../../domain/workload-link.js';
import { query } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import type { Ids } from '../../../shared/ids.js';
import { readTemplateSnapshot } from '../catalogue/stored-template.js';
import { MAX_RUN_ID_CHARS } from '../hosts/host-judgement.js';
import { findMachineRow } from '../hosts/machines.js';
import { attestEnd, attestUp } from '../money/attestation.js';
import { forgetUnattested } from '../money/meters.js';
import { dropClaims } from './claims.js';
import { finishCommand, type CommandRow } from './commands.js';
import type { Instance } from './queries.js';
import { considerRelease } from './release.js';
import { IMAGE_TOO_SLOW, forgetSlowImage, noteSlowImage } from './slow-images.js';
import { NO_ERROR, amend, fail, recordEvent, transition, type InstanceChanges } from './transitions.js';

export const NO_RELEASE = { gpus_released: 0, gpu_release: null, gpu_release_requested_at: null } as const;
const MAX_KEPT_LINES = 1000;
const LOWEST_PORT = 1024;
const HIGHEST_PORT = 65_535;
const MAX_IMAGE_CHARS = 1_024;
/** What of a host's words is kept. */
export const MAX_WORDS_CHARS = 4_000;

/** A command has taken effect on its host: closes it and moves the instance to where it leads. */
export function landCommand(
  tx: Tx,
  ids: Ids,
  command: CommandRow,
  instance: Instance,
  observation: Observation | undefined,
): void {
  finishCommand(tx, command, 'done');
  switch (command.kind) {
    case 'provision':
      forgetSlowImage(tx, instance);
      return landRunning(tx, instance, observation);
    case 'start':
      return landRunning(tx, instance, observation);
    case 'stop':
    case 'release':
      return landStopped(tx, ids, command, instance, observation);
    case 'destroy':
      return landDestroyed(tx, instance, observation);
    case 'access':
      return;
  }
}

const SSH_SILENT =
  'SSH has not answered yet; the workload is up and charged, and what it prints is in its logs. If SSH stays silent, look there for what keeps the machine busy or has replaced our SSH server';

/** A workload that ended before it could be reached has still run: up and ended in one transaction. */
function landRunning(tx: Tx, instance: Instance, observation: Observation | undefined): void {
  if (instance.status !== 'creating' && instance.status !== 'starting') return;
  const addresses = addressesOf(tx, instance, observation);
  const run_id = observation?.runId || null;
  const said = { ...addresses, ...sshOf(tx, instance, observation), ...NO_ERROR, ...NO_RELEASE, run_id };
  const running = transition(tx, instance, 'running', said, upSince(tx, instance, observation));
  const image = observation?.image.slice(0, MAX_IMAGE_CHARS) ?? '';
  recordEvent(tx, instance.id, 'running', image === '' ? 'the workload is up' : `the workload is up: ${image}`);
  if (observation?.sshSilent && isAlive(observation)) recordEvent(tx, instance.id, 'ssh_silent', SSH_SILENT);
  attestObservation(tx, instance.id, observation);
  if (observation && !isAlive(observation)) endWorkload(tx, running, observation);
}

/** When the run of an observation began, as far as it can have begun by the command that was sent. */
function upSince(tx: Tx, { charge_from }: Instance, observation: Observation | undefined): number {
  if (!observation || !isAlive(observation) || charge_from === null) return tx.now;
  return Math.min(Math.max(tx.now - observation.runningMs, charge_from), tx.now);
}

/** Since when SSH has answered in the run that is observed: what was known of the same run stays. */
export function sshOf(
  tx: Tx,
  { ssh_ready_at }: Instance,
  observation: Observation | undefined,
): Pick<Instance, 'ssh_ready_at'> {
  const answers =
    observation !== undefined && isAlive(observation) && observation.sshPort > 0 && !observation.sshSilent;
  return { ssh_ready_at: ssh_ready_at ?? (answers ? tx.now : null) };
}

/** Also from `running`: a stop that timed out lands late, and goes through `stopping` in the same transaction. */
function landStopped(
  tx: Tx,
  ids: Ids,
  command: CommandRow,
  instance: Instance,
  observation: Observation | undefined,
): void {
  if (command.kind === 'release') dropClaims(tx, instance.id);
  const stopping = instance.status === 'running' ? transition(tx, instance, 'stopping') : instance;
  attestLast(tx, instance.id, observation);
  if (stopping.status !== 'stopping' && stopping.status !== 'stopped') return;
  const changes: InstanceChanges = {
    ...keptLines(observation?.exit),
    ...(command.kind === 'release' ? { gpus_released: 1, gpu_release: 'released' } : {}),
  };
  if (stopping.status === 'stopped') {
    considerRelease(tx, ids, amend(tx, stopping, changes));
    return;
  }
  const stopped = transition(tx, stopping, 'stopped', { ...changes, ...NO_ERROR });
  recordEvent(tx, instance.id, 'stopped', 'the workload is down, its disk is kept');
  considerRelease(tx, ids, stopped);
}

function landDestroyed(tx: Tx, instance: Instance, observation: Observation | undefined): void {
  attestObservation(tx, instance.id, observation);
  // Also for one that did not wait for its lost machine: only now are its GPUs free.
  dropClaims(tx, instance.id);
  if (instance.status !== 'destroying') return;
  transition(tx, instance, 'destroyed', { workload_sealed: null, access_token_sealed: null });
  recordEvent(tx, instance.id, 'destroyed', 'container, disk and contents are removed');
}

/** A running workload is down and no command asked for it: into `error`; its GPUs are free, for the host has said so. */
export function endWorkload(tx: Tx, instance: Instance, observation: Observation): void {
  const { error_code, error_message } = describeEnd(observation);
  dropClaims(tx, instance.id);
  fail(tx, instance, error_code, error_message, keptLines(observation.exit));
  attestLast(tx, instance.id, observation);
}

/** What a host says of a run is what its GPU time is charged by. */
function attestObservation(tx: Tx, instanceId: string, observation: Observation | undefined): void {
  if (!observation?.runId || observation.runId.length > MAX_RUN_ID_CHARS) return;
  const { runId, runningMs, exit } = observation;
  if (exit) attestEnd(tx, instanceId, { runId, ms: exit.ranMs });
  else attestUp(tx, instanceId, { runId, ms: runningMs });
}

/** The last word on a workload that is down: what it does not attest, nobody will. */
function attestLast(tx: Tx, instanceId: string, observation: Observation | undefined): void {
  attestObservation(tx, instanceId, observation);
  forgetUnattested(tx, 'instance_id', instanceId);
}

function describeEnd({ state, exit }: Observation): { error_code: InstanceErrorCode; error_message: string } {
  if (state === WorkloadState.WORKLOAD_STATE_ABSENT || !exit) {
    return { error_code: 'workload_lost', error_message: 'the host no longer has the workload' };
  }
  if (exit.outOfMemory) {
    return {
      error_code: 'workload_failed',
      error_message: withLines('the workload ran out of memory and was killed', exit),
    };
  }
  if (exit.code === 0)
    return { error_code: 'workload_completed', error_message: 'the workload ended with exit code 0' };
  return {
    error_code: 'workload_failed',
    error_message: withLines(`the workload ended with exit code ${exit.code}`, exit),
  };
}

function withLines(message: string, { lastLines }: Exit): string {
  return lastLines.length === 0
    ? message
    : `${message}; its last lines:\n${lastLines.slice(-20).join('\n').slice(-MAX_WORDS_CHARS)}`;
}

function keptLines(exit: Exit | undefined): { last_lines?: string } {
  return exit ? { last_lines: JSON.stringify(exit.lastLines.slice(-MAX_KEPT_LINES)) } : {};
}

export interface Reason {
  code: string;
  message: string;
}

/** The host could not make it and has cleaned up after itself: the workload is down. */
export function failProvision(tx: Tx, command: CommandRow, instance: Instance, reason: Reason): void {
  finishCommand(tx, command, 'failed', reason);
  if (instance.status !== 'creating') return;
  dropClaims(tx, instance.id);
  if (reason.code === IMAGE_TOO_SLOW) noteSlowImage(tx, instance);
  fail(tx, instance, 'provision_failed', reason.message);
}

/** The host took the start up and could not carry it through: the workload is down, its disk is kept. */
export function failStart(tx: Tx, ids: Ids, command: CommandRow, instance: Instance, reason: Reason): void {
  finishCommand(tx, command, 'failed', reason);
  if (instance.status !== 'starting') return;
  if (instance.gpus_released) dropClaims(tx, instance.id);
  const error_code = startErrorOf(reason) ?? 'start_failed';
  const stopped = transition(tx, instance, 'stopped', { error_code, error_message: reason.message });
  recordEvent(tx, instance.id, error_code, reason.message);
  considerRelease(tx, ids, stopped);
}

/** What a failed start leaves on the instance, where the contract has a name for it. */
export function startErrorOf({ code }: Reason): InstanceErrorCode | null {
  return code === 'GPUS_UNAVAILABLE' ? 'gpus_unavailable' : null;
}

export function isAlive({ state }: Pick<Observation, 'state'>): boolean {
  return state === WorkloadState.WORKLOAD_STATE_RUNNING || state === WorkloadState.WORKLOAD_STATE_STARTING;
}

/** Where the workload is reached, as its host says; what cannot be an address, or is none of its template's, is none. */
export function addressesOf(
  tx: Tx,
  instance: Instance,
  observation: Observation | undefined,
): Pick<Instance, 'ssh_host' | 'ssh_port' | 'jupyter_url' | 'open_url'> {
  const said = observation?.sshPort ?? 0;
  const port = said >= LOWEST_PORT && said <= HIGHEST_PORT ? said : null;
  const { public_address } = findMachineRow(tx, instance.machine_id);
  const { mode, ports } = readTemplateSnapshot(instance.template_snapshot);
  const home = { publicAddress: public_address, instanceId: instance.id };
  const hasButton = instancePorts(mode, ports).some(({ open_button }) => open_button);
  return {
    ssh_host: port === null ? null : public_address,
    ssh_port: port,
    jupyter_url: mode.includes('jupyter') ? workloadLink(observation?.jupyterUrl ?? '', home) : null,
    open_url: hasButton ? workloadLink(observation?.openUrl ?? '', home) : null,
  };
}

/** The instance that a host speaks of, if it is one of that host's own. */
export function findInstanceOfMachine(tx: Tx, machineId: string, instanceId: string): Instance | undefined {
  return tx.get(
    query.selectFrom('instances').selectAll().where('id', '=', instanceId).where('machine_id', '=', machineId),
  );
}
