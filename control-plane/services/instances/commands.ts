import type { CommandKind, CommandState } from '../../domain/command.js';
import { knownFailure } from '../../domain/command-failure.js';
import type { CommandFailure } from '../../domain/metric-event.js';
import type { Row } from '../../store/schema.js';
import { query } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import type { Instance } from './queries.js';
import { amend } from './transitions.js';

export type CommandRow = Row<'commands'>;

/**
 * Records an intent beside the state change that it belongs to, with an identity of its own, and closes every earlier one
 * of the instance. A worker sends it after the commit, until the host has answered (API rules 28 and 29).
 */
export function recordCommand(
  tx: Tx,
  instance: Instance,
  kind: CommandKind,
): { instance: Instance; command: CommandRow } {
  const { id: instance_id, machine_id } = instance;
  const command = insertCommand(tx, { instance_id, machine_id, sequence: instance.sequence + 1, kind });
  return { instance: amend(tx, instance, { sequence: command.sequence }), command };
}

/** Records that a workload in quarantine is to be removed, like {@link recordCommand}. */
export function recordRemoval(tx: Tx, workload: Row<'quarantine'>): CommandRow {
  const { instance_id, machine_id, sequence } = workload;
  const given = tx.get(
    query
      .selectFrom('commands')
      .select((eb) => eb.fn.max('sequence').as('highest'))
      .where('instance_id', '=', instance_id)
      .where('machine_id', '=', machine_id),
  );
  const above = Math.max(sequence, given?.highest ?? 0) + 1;
  return insertCommand(tx, { instance_id, machine_id, sequence: above, kind: 'destroy' });
}

function insertCommand(
  tx: Tx,
  order: Pick<CommandRow, 'instance_id' | 'machine_id' | 'sequence' | 'kind'>,
): CommandRow {
  const command: CommandRow = {
    id: tx.id(),
    ...order,
    state: 'open',
    created_at: tx.now,
    attempts: 0,
    next_send_at: tx.now,
    accepted_at: null,
    finished_at: null,
    code: null,
    message: null,
    request_id: tx.requestId,
  };
  closeOpenCommand(tx, { id: order.instance_id, machine_id: order.machine_id });
  tx.run(query.insertInto('commands').values(command));
  tx.nudge('dispatch');
  return command;
}

/** What was still wanted of the instance is overtaken. */
export function closeOpenCommand(tx: Tx, { id, machine_id }: Pick<Instance, 'id' | 'machine_id'>): void {
  tx.run(
    query
      .updateTable('commands')
      .set({ state: 'closed', finished_at: tx.now })
      .where('instance_id', '=', id)
      .where('machine_id', '=', machine_id)
      .where('state', '=', 'open'),
  );
}

/** The one command of the instance that its host has not answered for good, if there is one. */
export function findOpenCommand(tx: Tx, instance: Pick<Instance, 'id' | 'machine_id'>): CommandRow | undefined {
  return tx.get(
    query
      .selectFrom('commands')
      .selectAll()
      .where('instance_id', '=', instance.id)
      .where('machine_id', '=', instance.machine_id)
      .where('state', '=', 'open'),
  );
}

/** The same, where it is to change how the workload stands: who is to get in changes nothing of that. */
export function findOpenChange(tx: Tx, instance: Pick<Instance, 'id' | 'machine_id'>): CommandRow | undefined {
  const open = findOpenCommand(tx, instance);
  return open?.kind === 'access' ? undefined : open;
}

/** The number below which what a host says of a workload is of an earlier state of it. */
export function sequenceOfChange(tx: Tx, instance: Instance): number {
  if (findOpenCommand(tx, instance)?.kind !== 'access') return instance.sequence;
  const changes = query
    .selectFrom('commands')
    .select((eb) => eb.fn.max('sequence').as('newest'))
    .where('instance_id', '=', instance.id)
    .where('machine_id', '=', instance.machine_id)
    .where('kind', '<>', 'access');
  return tx.get(changes)?.newest ?? instance.sequence;
}

/** The command that this one has closed, or came after. */
export function findPreviousCommand(tx: Tx, { instance_id, machine_id, sequence }: CommandRow): CommandRow | undefined {
  return tx.get(
    query
      .selectFrom('commands')
      .selectAll()
      .where('instance_id', '=', instance_id)
      .where('machine_id', '=', machine_id)
      .where('sequence', '<', sequence)
      .orderBy('sequence', 'desc')
      .limit(1),
  );
}

export function findCommand(tx: Tx, id: string): CommandRow | undefined {
  return tx.get(query.selectFrom('commands').selectAll().where('id', '=', id));
}

export function finishCommand(
  tx: Tx,
  command: CommandRow,
  state: Exclude<CommandState, 'open'>,
  answer: { code?: string; message?: string } = {},
): void {
  tx.run(
    query
      .updateTable('commands')
      .set({ state, finished_at: tx.now, code: answer.code || null, message: answer.message || null })
      .where('id', '=', command.id),
  );
  const failure = state === 'failed' ? { failure: failureOf(tx, command, answer.code ?? '') } : {};
  tx.count({ what: 'command', kind: command.kind, outcome: state, ...failure });
}

function failureOf(tx: Tx, { instance_id, machine_id }: CommandRow, code: string): CommandFailure {
  const instance = query.selectFrom('instances').select('organization_id').where('id', '=', instance_id);
  const organizationId = tx.get(instance)?.organization_id ?? null;
  return { code: knownFailure(code), machineId: machine_id, organizationId };
}
