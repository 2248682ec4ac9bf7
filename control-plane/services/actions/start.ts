import { actorOf, type Actor } from '../../domain/act.js';
import { burnPerHourMicro } from '../../domain/money/burn.js';
import { keyIdOf, type Caller } from '../../domain/caller.js';
import { isMaintenanceNear } from '../../domain/machines/machine.js';
import { Refusal } from '../../domain/refusal.js';
import type { Tx } from '../../store/store.js';
import type { CommandAnswer } from '../connections/pending-commands.js';
import { findMachineRow } from '../machines/machines.js';
import { settleOrganizations } from '../billing/settle/settle.js';
import type { Core, Platform } from '../system/platform.js';
import { checkNotSuspended } from '../organizations/suspension.js';
import { reclaimGpus } from '../instances/claims.js';
import { findCommand, recordCommand, type CommandRow } from '../instances/commands.js';
import { checkPayment } from '../billing/payments/payment-check.js';
import { checkOwnLimit, checkSpendCaps } from '../billing/limits/spend-check.js';
import { findInstance, findLiveRates, getOwnInstance, type Instance } from '../instances/queries.js';
import { recordInstanceAct } from '../instances/requests.js';
import { undoStart } from '../instances/release.js';
import { describeInstance, type InstanceDetails } from './instance-details.js';
import { checkAction } from './stop.js';
import { transition } from '../instances/transitions.js';
import type { Reason } from '../events/timeline.js';

/** For so long a host may take to accept or refuse a start. */
export const ANSWER_TIMEOUT_MS = 10_000;

/**
 * Starts a stopped instance on the same disk and GPUs. It is the only use case that waits for the host, for at most ten seconds, to
 * accept or refuse. After any failure the instance is `stopped` again with its disk. Refuses with INSTANCE_NOT_FOUND,
 * INVALID_STATE, ORGANIZATION_SUSPENDED, PAYMENTS_FROZEN, INSUFFICIENT_BALANCE, SPEND_LIMIT_REACHED, CAPACITY_UNAVAILABLE,
 * HOST_UNREACHABLE, START_REFUSED and START_UNAVAILABLE.
 */
export async function start(platform: Platform, caller: Caller, id: string): Promise<InstanceDetails> {
  const { instance, command, answered } = recordStart(platform, caller, id);
  // A start that is lost has no answer to wait for.
  await platform.store.durable();
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
    settleOrganizations(platform, tx, [caller.organizationId]);
    const instance = getOwnInstance(tx, caller, id);
    const reason = { kind: 'start_requested', message: 'start requested' } as const;
    const cause = { by: actorOf(caller), apiKeyId: keyIdOf(caller), reason };
    const { instance: recorded, command } = beginStart(platform, tx, instance, cause);
    return {
      instance: describeInstance(platform, tx, recorded),
      command,
      answered: platform.pendingCommands.wait(command.id, ANSWER_TIMEOUT_MS),
    };
  });
}

/** Why an instance is started. */
export interface StartCause {
  by: Actor;
  /** For whose caps the run counts; null: only for those of the organization. */
  apiKeyId: string | null;
  reason: Reason;
}

/**
 * Records the start of a stopped instance, whose organization must be settled in the same transaction. Whoever records it must see to
 * it that it is undone without an answer in time ({@link undoUnanswered}). Refuses like {@link start}.
 */
export function beginStart(
  platform: Platform,
  tx: Tx,
  instance: Instance,
  { by, apiKeyId, reason }: StartCause,
): { instance: Instance; command: CommandRow } {
  checkAction(instance, 'start');
  checkNotSuspended(tx, instance.organization_id);
  const live = findLiveRates(tx, instance.organization_id);
  const started = { status: 'starting' as const, runKeyId: apiKeyId };
  const withThis = live.map((other) => (other.id === instance.id ? { ...other, ...started } : other));
  checkPayment(tx, instance.organization_id, burnPerHourMicro(withThis));
  checkSpendCaps(tx, { organizationId: instance.organization_id, apiKeyId }, withThis);
  checkOwnLimit(instance, tx.now, burnPerHourMicro(withThis));
  checkHost(platform, tx, instance);
  reclaimGpus(tx, instance);
  recordInstanceAct(tx, instance, by, 'instance.start', reason);
  return recordCommand(
    tx,
    transition(tx, instance, 'starting', reason, { ...staleRelease(instance), run_key_id: apiKeyId }),
    'start',
  );
}

/** Returns the changes that cancel a release which the host has not confirmed: this start replaces it. */
function staleRelease({ gpu_release }: Instance): Partial<Pick<Instance, 'gpu_release' | 'gpu_release_requested_at'>> {
  return gpu_release === 'pending' ? { gpu_release: null, gpu_release_requested_at: null } : {};
}

function checkHost(platform: Platform, tx: Tx, instance: Instance): void {
  const machine = findMachineRow(tx, instance.machine_id);
  if (machine.removed_at !== null) {
    throw new Refusal(
      'START_REFUSED',
      'the host no longer holds the workload, because its machine was removed; destroy the instance and deploy again',
    );
  }
  if (machine.lost_at !== null || !platform.connections.isConnected(machine.id)) {
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
 * Undoes a start without an answer in time. A start that was answered at the last moment stays. Refuses with START_UNAVAILABLE, with
 * START_REFUSED if the host has refused by now, and with INVALID_STATE if another command came meanwhile.
 */
function giveUp(core: Core, sent: CommandRow): void {
  const refusal = refusalOf(core.store.transact((tx) => undoUnanswered(tx, sent)));
  if (refusal) throw refusal;
}

/** What became of a start. */
export type StartOutcome =
  | { is: 'started' }
  | { is: 'undone' }
  | { is: 'refused'; message: string }
  | { is: 'overtaken'; by: string };

/** Returns what became of a start; undefined: its host has not answered yet. */
export function outcomeOfStart(tx: Tx, sent: CommandRow): StartOutcome | undefined {
  const instance = findInstance(tx, sent.instance_id);
  const command = findCommand(tx, sent.id);
  if (command?.state === 'done' || (command?.state === 'open' && command.accepted_at !== null))
    return { is: 'started' };
  if (command?.state === 'refused' || command?.state === 'failed')
    return { is: 'refused', message: command.message ?? '' };
  if (instance?.status !== 'starting' || command?.state !== 'open')
    return { is: 'overtaken', by: instance?.status ?? 'gone' };
  return undefined;
}

/**
 * Undoes a start whose host has not answered: the instance goes back to `stopped`, and a compensating command undoes a start that did
 * land. Returns what became of the start, which is something else if its host has answered by now.
 */
export function undoUnanswered(tx: Tx, sent: CommandRow): StartOutcome {
  const instance = findInstance(tx, sent.instance_id);
  const outcome = outcomeOfStart(tx, sent);
  if (outcome || !instance) return outcome ?? { is: 'overtaken', by: 'gone' };
  const message = 'the host did not answer in time; the start is undone';
  undoStart(tx, transition(tx, instance, 'stopped', { kind: 'start_unavailable', message }));
  return { is: 'undone' };
}

/** Returns the refusal that tells of a start without success; undefined: it has succeeded. */
export function refusalOf(outcome: StartOutcome): Refusal | undefined {
  switch (outcome.is) {
    case 'started':
      return undefined;
    case 'undone':
      return new Refusal('START_UNAVAILABLE', 'the host did not answer in time; try again shortly');
    case 'refused':
      return new Refusal('START_REFUSED', outcome.message);
    case 'overtaken':
      return new Refusal(
        'INVALID_STATE',
        `the instance is ${outcome.by} by now: another request has changed it during this start`,
      );
  }
}
