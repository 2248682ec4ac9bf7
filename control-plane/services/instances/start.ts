import { burnPerHourMicro } from '../../domain/burn.js';
import type { Caller } from '../../domain/caller.js';
import { isMaintenanceNear } from '../../domain/machine.js';
import { Refusal } from '../../domain/refusal.js';
import type { Tx } from '../../store/store.js';
import type { CommandAnswer } from '../command-answers.js';
import { findMachineRow } from '../machines.js';
import type { Platform } from '../platform.js';
import { dropClaims, reclaimGpus } from './claims.js';
import { findCommand, finishCommand, recordCommand, type CommandRow } from './commands.js';
import { checkPayment } from './payment-check.js';
import { findInstance, findLiveInstances, getOwnInstance, ratesOf, type Instance } from './queries.js';
import { describeInstance, type InstanceDetails } from './read.js';
import { checkAction } from './stop.js';
import { recordEvent, transition } from './transitions.js';

const ANSWER_TIMEOUT_MS = 10_000;

/**
 * Starts a stopped instance on the same disk and GPUs. The one use case that waits: until its host has accepted or refused.
 * Whatever goes wrong, the instance is `stopped` again with its disk. Refuses with INSTANCE_NOT_FOUND, INVALID_STATE,
 * PAYMENTS_FROZEN, INSUFFICIENT_BALANCE, CAPACITY_UNAVAILABLE, HOST_UNREACHABLE, START_REFUSED, START_UNAVAILABLE.
 */
export async function start(platform: Platform, caller: Caller, id: string): Promise<InstanceDetails> {
  const { instance, command, answered } = recordStart(platform, caller, id);
  const answer = await answered;
  if (answer.kind === 'refused') throw new Refusal('START_REFUSED', answer.message);
  if (answer.kind === 'none') giveUp(platform, command);
  return instance;
}

interface SentStart {
  instance: InstanceDetails;
  command: CommandRow;
  answered: Promise<CommandAnswer>;
}

function recordStart(platform: Platform, caller: Caller, id: string): SentStart {
  return platform.store.transact((tx) => {
    const instance = getOwnInstance(tx, caller, id);
    checkAction(instance, 'start');
    const others = findLiveInstances(tx, instance.organization_id).filter((other) => other.id !== id);
    const burn = burnPerHourMicro([...others, { ...instance, status: 'starting' as const }].map(ratesOf));
    checkPayment(tx, instance.organization_id, burn);
    checkHost(platform, tx, instance);
    reclaimGpus(tx, instance);

    const starting = transition(tx, instance, 'starting');
    recordEvent(tx, id, 'start_requested', 'start requested');
    const { instance: recorded, command } = recordCommand(tx, platform.ids, starting, 'start');
    return {
      instance: describeInstance(platform, tx, recorded),
      command,
      answered: platform.answers.expect(command.id, ANSWER_TIMEOUT_MS),
    };
  });
}

function checkHost(platform: Platform, tx: Tx, instance: Instance): void {
  const machine = findMachineRow(tx, instance.machine_id);
  if (machine.lost_at !== null || machine.removed_at !== null || !platform.hosts.isConnected(machine.id)) {
    throw new Refusal(
      'HOST_UNREACHABLE',
      'the machine of this instance is not connected; the disk is kept, try again later',
    );
  }
  const { maintenance_starts_at: startsAt, maintenance_ends_at: endsAt } = machine;
  if (startsAt !== null && endsAt !== null && isMaintenanceNear({ startsAt, endsAt }, tx.now)) {
    throw new Refusal(
      'START_REFUSED',
      `the machine is in maintenance from ${new Date(startsAt).toISOString()}; try again after it`,
    );
  }
}

/**
 * No answer in time: back to `stopped`, with a compensating command, so that a start which did land is undone. Only if state
 * and command are still the ones that were sent; a start that was answered at the last moment stands.
 */
function giveUp(platform: Platform, sent: CommandRow): void {
  const status = platform.store.transact((tx) => {
    const instance = findInstance(tx, sent.instance_id);
    const command = findCommand(tx, sent.id);
    if (command?.state === 'done' || (command?.state === 'open' && command.accepted_at !== null)) return 'started';
    if (instance?.status !== 'starting' || command?.state !== 'open') return instance?.status;
    const stopped = transition(tx, instance, 'stopped');
    recordEvent(tx, instance.id, 'start_unavailable', 'the host did not answer in time; the start is undone');
    recordCommand(tx, platform.ids, stopped, instance.gpus_released ? 'release' : 'stop');
    return 'undone';
  });
  if (status === 'undone') throw new Refusal('START_UNAVAILABLE', 'the host did not answer in time; try again shortly');
  if (status !== 'started') throw new Refusal('INVALID_STATE', `the instance is ${status} by now`);
}

/** The host refused, before touching anything: back to `stopped`; GPUs that this start had claimed anew go at once. */
export function undoRefusedStart(
  tx: Tx,
  instance: Instance,
  command: CommandRow,
  reason: { code: string; message: string },
): void {
  finishCommand(tx, command, 'refused', reason);
  if (instance.status !== 'starting') return;
  if (instance.gpus_released) dropClaims(tx, instance.id);
  transition(tx, instance, 'stopped');
  recordEvent(tx, instance.id, 'start_refused', reason.message);
}
