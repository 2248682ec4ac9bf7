import type { HasHostBudgets } from '../events/host-budget.js';
import { CommandOutcome, type CommandResult } from '../../../shared/gen/gpurent/agent/v1/agent.js';
import { isPlausible } from '../../domain/instances/command.js';
import { query, updateRows } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import { noteAccess, refuseAccess } from '../instances/access.js';
import { findCommand, type CommandRow } from '../instances/commands.js';
import { applyDone } from './command-outcomes.js';
import type { Instance } from '../instances/queries.js';
import { giveUpProvision } from './time-outs.js';
import { amend } from '../instances/transitions.js';
import { chargeEndedRuns } from './ended-runs.js';
import type { Core, Platform } from '../system/platform.js';
import { applyRemoved, renumberRemoval } from './quarantine.js';
import { recordHostNote } from '../events/timeline.js';
import { applyProvisionFailed, applyStartFailed, applyStartRefused } from './command-failures.js';
import { MAX_WORDS_CHARS, findInstanceOfMachine } from './observations.js';

const LATER_ORDERS =
  'the host has carried out later commands, which were lost when the database was restored from a backup; destroy the instance and deploy again';

/** Applies a host's answer to a command. Ignores it if the command belongs to another host or is no longer open. */
export function recordResult(platform: Platform & HasHostBudgets, machineId: string, result: CommandResult): void {
  platform.store.transact((tx) => {
    // Runs are charged also if the command of the answer is no longer open.
    const told = findInstanceOfMachine(tx, machineId, result.instanceId);
    if (told) chargeEndedRuns(tx, told, result.runs);
    const command = findCommand(tx, result.commandId);
    if (command?.machine_id !== machineId || command.state !== 'open') return;
    const instance = findInstanceOfMachine(tx, machineId, command.instance_id);
    if (!instance) return recordRemovalResult(tx, command, result);
    const answer = (kind: 'accepted' | 'refused') => {
      const message = result.message.slice(0, MAX_WORDS_CHARS);
      tx.afterCommit(() => platform.pendingCommands.resolve(command.id, { kind, message }));
    };
    switch (result.outcome) {
      case CommandOutcome.COMMAND_OUTCOME_ACCEPTED:
        tx.run(updateRows('commands', { accepted_at: tx.now }, { id: command.id }));
        return answer('accepted');
      case CommandOutcome.COMMAND_OUTCOME_DONE:
        applyDone(tx, command, noteAccess(platform, tx, instance, result), result.observation);
        return answer('accepted');
      case CommandOutcome.COMMAND_OUTCOME_REFUSED:
      case CommandOutcome.COMMAND_OUTCOME_FAILED:
        recordFailure(platform, tx, command, instance, result);
        return answer('refused');
      case CommandOutcome.COMMAND_OUTCOME_STALE:
        return renumber(tx, command, instance, result.highestSequence);
      default:
        return;
    }
  });
}

/** Applies the answer to the removal of a quarantined workload. Unless it is done, the command stays open and is sent again. */
function recordRemovalResult(tx: Tx, command: CommandRow, { outcome, highestSequence }: CommandResult): void {
  if (outcome === CommandOutcome.COMMAND_OUTCOME_DONE) return applyRemoved(tx, command);
  const stale = outcome === CommandOutcome.COMMAND_OUTCOME_STALE && isPlausible(command, highestSequence);
  if (!stale || highestSequence < command.sequence) return;
  renumberRemoval(tx, command, highestSequence + 1);
}

function recordFailure(
  core: Core & HasHostBudgets,
  tx: Tx,
  command: CommandRow,
  instance: Instance,
  result: CommandResult,
): void {
  const reason = { code: result.code.slice(0, 64), message: result.message.slice(0, MAX_WORDS_CHARS) };
  const refused = result.outcome === CommandOutcome.COMMAND_OUTCOME_REFUSED;
  switch (command.kind) {
    case 'provision':
      return applyProvisionFailed(tx, command, instance, reason);
    case 'start':
      return refused
        ? applyStartRefused(tx, instance, command, reason)
        : applyStartFailed(tx, command, instance, reason);
    case 'access':
      return refuseAccess(tx, instance, command, reason);
    default:
      // A stop, release or destroy stays open and is sent again until it is done.
      return recordHostNote(core, tx, instance.id, { kind: `${command.kind}_delayed`, message: reason.message });
  }
}

/**
 * Sends a stale command again with a sequence above the host's. The host has seen commands that a restore of the database has lost.
 * A provision is given up instead: the host can have made and removed the workload since, and it must not be made again.
 */
function renumber(tx: Tx, command: CommandRow, instance: Instance, highest: number): void {
  if (!isPlausible(instance, highest) || highest < command.sequence) return;
  const renumbered = amend(tx, instance, { sequence: Math.max(instance.sequence, highest) + 1 });
  if (command.kind === 'provision') return giveUpProvision(tx, renumbered, LATER_ORDERS);
  tx.run(query.updateTable('commands').set({ sequence: renumbered.sequence }).where('id', '=', command.id));
}
