import type { CommandKind, CommandState } from '../../domain/instances/command.js';
import { knownFailure } from '../../domain/instances/command-failure.js';
import type { CommandFailure } from '../../domain/metric-event.js';
import type { Row } from '../../store/schema.js';
import { compileOnce, insertRow, query, rowById, sql, updateRows } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import type { Instance } from './queries.js';
import { amend } from './transitions.js';

export type CommandRow = Row<'commands'>;

/** How many commands of an instance are kept: so many that change its workload, and so many that change its access. */
export const COMMANDS_KEPT = 50;
/** Most that one new command deletes: an earlier release has kept them all. */
const MOST_DROPPED = 10;

/**
 * Records a command in the transaction of the state change that it belongs to, and closes the earlier command of the instance. After
 * the commit a worker sends it until the host has answered (API rules 28 and 29).
 */
export function recordCommand(
  tx: Tx,
  instance: Instance,
  kind: CommandKind,
): { instance: Instance; command: CommandRow } {
  const { id: instance_id, machine_id, created_at: instance_created_at } = instance;
  const order = { instance_id, machine_id, sequence: instance.sequence + 1, kind };
  const command = insertCommand(tx, { ...order, instance_created_at });
  // No run that the command starts can have begun before it was wanted.
  const floor = kind === 'provision' || kind === 'start' ? { run_not_before: tx.now } : {};
  return { instance: amend(tx, instance, { sequence: command.sequence, ...floor }), command };
}

/** Records the command that removes a workload in quarantine, like {@link recordCommand}. */
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
  return insertCommand(tx, { instance_id, machine_id, sequence: above, kind: 'destroy', instance_created_at: null });
}

function insertCommand(
  tx: Tx,
  order: Pick<CommandRow, 'instance_id' | 'machine_id' | 'sequence' | 'kind' | 'instance_created_at'>,
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
    stuck_since: null,
  };
  closeOpenCommand(tx, { id: order.instance_id, machine_id: order.machine_id });
  tx.run(insertRow('commands', command));
  dropOldest(tx, command);
  tx.nudge('dispatch');
  return command;
}

/** Deletes the oldest commands of an instance that are of the same sort as a new one: a renter could add them for ever. */
function dropOldest(tx: Tx, { instance_id, machine_id, kind }: CommandRow): void {
  tx.run((kind === 'access' ? accessBeyond : changesBeyond)({ instance_id, machine_id }));
}

const beyond = (comparison: '=' | '<>') =>
  compileOnce(({ instance_id, machine_id }: Pick<CommandRow, 'instance_id' | 'machine_id'>) => {
    const oldest = query
      .selectFrom('commands')
      .select('id')
      .where('machine_id', '=', machine_id)
      .where('instance_id', '=', instance_id)
      .where('kind', comparison, sql.lit('access'))
      .orderBy('sequence', 'desc')
      .limit(sql.lit(MOST_DROPPED))
      .offset(sql.lit(COMMANDS_KEPT));
    return query.deleteFrom('commands').where('id', 'in', oldest);
  });
const accessBeyond = beyond('=');
const changesBeyond = beyond('<>');

/** Closes the open command of an instance, because a newer one replaces it or nothing is wanted any more. */
export function closeOpenCommand(tx: Tx, { id, machine_id }: Pick<Instance, 'id' | 'machine_id'>): void {
  tx.run(closing({ id, machine_id, now: tx.now }));
}

const closing = compileOnce(({ id, machine_id, now }: { id: string; machine_id: string; now: number }) =>
  query
    .updateTable('commands')
    .set({ state: sql.lit('closed'), finished_at: now })
    .where('instance_id', '=', id)
    .where('machine_id', '=', machine_id)
    .where('state', '=', sql.lit('open')),
);

/** Returns the open command of an instance, or undefined. There is at most one. */
export function findOpenCommand(tx: Tx, instance: Pick<Instance, 'id' | 'machine_id'>): CommandRow | undefined {
  return tx.get(openCommandOf({ id: instance.id, machine_id: instance.machine_id }));
}

const openCommandOf = compileOnce(({ id, machine_id }: { id: string; machine_id: string }) =>
  query
    .selectFrom('commands')
    .selectAll()
    .where('instance_id', '=', id)
    .where('machine_id', '=', machine_id)
    .where('state', '=', sql.lit('open')),
);

/** Returns the open command of an instance unless it is an `access` command, which leaves the workload as it is. */
export function findOpenChange(tx: Tx, instance: Pick<Instance, 'id' | 'machine_id'>): CommandRow | undefined {
  const open = findOpenCommand(tx, instance);
  return open?.kind === 'access' ? undefined : open;
}

/** Tells whether a stop is still sent to the host of a running instance: it has timed out. */
export function isBeingStopped(tx: Tx, instance: Pick<Instance, 'id' | 'machine_id'>): boolean {
  const kind = findOpenCommand(tx, instance)?.kind;
  return kind === 'stop' || kind === 'release';
}

/**
 * Returns the sequence of the last command that changes the workload. A report with a lower sequence is about an earlier state.
 */
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

/** Returns the command of the instance with the next lower sequence, or undefined. */
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
  return tx.get(rowById('commands', id));
}

/** Ends a command with its host's answer, and counts it in the metrics. */
export function finishCommand(
  tx: Tx,
  command: CommandRow,
  state: Exclude<CommandState, 'open'>,
  answer: { code?: string; message?: string } = {},
): void {
  const end = { state, finished_at: tx.now, code: answer.code || null, message: answer.message || null };
  tx.run(updateRows('commands', end, { id: command.id }));
  const failure = state === 'failed' ? { failure: failureOf(tx, command, answer.code ?? '') } : {};
  tx.count({ what: 'command', kind: command.kind, outcome: state, ...failure });
}

function failureOf(tx: Tx, { instance_id, machine_id }: CommandRow, code: string): CommandFailure {
  const instance = query.selectFrom('instances').select('organization_id').where('id', '=', instance_id);
  const organizationId = tx.get(instance)?.organization_id ?? null;
  return { code: knownFailure(code), machineId: machine_id, organizationId };
}
