import { ControlMessage, type Command, type WorkloadSpec } from '../../../shared/gen/gpurent/agent/v1/agent.js';
import { messageOf } from '../../../shared/coded-error.js';
import type { Logger } from '../../../shared/logger.js';
import { LONGEST_RESEND_MS, resendDelayMs } from '../../domain/instances/command.js';
import { compileOnce, query, sql, updateRows } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import type { CommandRow } from '../instances/commands.js';
import { accessOf } from '../instances/access.js';
import { findInstance, gpusOf, type Instance } from '../instances/queries.js';
import { decryptWorkload, type Workload } from '../instances/workload.js';
import { openChargeWindow } from '../instances/transitions.js';
import type { Core, Platform } from '../system/platform.js';
import type { Encryption } from '../secrets/encryption.js';
import { sealOrigin } from '../instances/origin.js';

/** Most commands for one host in one run, so that no host delays the commands of others. */
const BATCH_PER_HOST = 50;
const CONGESTED_RETRY_MS = 1_000;

/**
 * Sends open commands that are due, to hosts whose stream has room. The attempt is committed before the command is sent. A later run
 * sends a command that its host has not answered again, with the same id (API rules 28 and 29). Returns the number sent, and the
 * number that cannot be encoded, which are logged and do not hold up others.
 */
export function dispatchCommands(platform: Platform, logger: Logger): { sent: number; unsendable: number } {
  const prepared = platform.store.transact((tx) =>
    hostsWithDue(tx)
      .filter((machineId) => platform.connections.isWritable(machineId))
      .flatMap((machineId) => {
        const due = findDue(tx, machineId);
        if (due.length === BATCH_PER_HOST) tx.nudge('dispatch');
        return due.map((command) => prepare(platform, tx, command));
      }),
  );
  const ready = prepared.filter(({ message }) => message !== undefined);
  for (const { command, obstacle } of prepared) if (obstacle !== undefined) logUnsendable(logger, command, obstacle);
  const unsent = ready.filter(({ command, message }) => {
    const isSent = message !== undefined && platform.connections.send(command.machine_id, message);
    if (isSent) logSent(logger, command);
    return !isSent;
  });
  if (unsent.length > 0) platform.store.transact((tx) => unsent.forEach(({ command }) => putBack(tx, command)));
  return { sent: ready.length - unsent.length, unsendable: prepared.length - ready.length };
}

function logSent(logger: Logger, { id, instance_id, machine_id, kind, attempts, request_id }: CommandRow): void {
  const ids = { requestId: request_id, instanceId: instance_id, commandId: id, hostId: machine_id };
  // A command is sent again until it is answered; only the first attempt is worth a log line.
  logger[attempts === 0 ? 'info' : 'debug']({ ...ids, kind, attempt: attempts + 1 }, 'command sent');
}

function logUnsendable(logger: Logger, { id, instance_id, kind }: CommandRow, reason: string): void {
  logger.error(
    { instanceId: instance_id, commandId: id, kind, reason },
    'a command cannot be sent because it cannot be encoded',
  );
}

function hostsWithDue(tx: Tx): string[] {
  return tx.all(machinesWithDue(limitsOf(tx))).map(({ machine_id }) => machine_id);
}

const machinesWithDue = compileOnce((limits: { now: number; tooLate: number }) =>
  due(limits).select('machine_id').distinct(),
);

function findDue(tx: Tx, machineId: string): CommandRow[] {
  return tx.all(dueOn({ machineId, ...limitsOf(tx) }));
}

const dueOn = compileOnce(({ machineId, now, tooLate }: { machineId: string; now: number; tooLate: number }) =>
  due({ now, tooLate })
    .selectAll()
    .where('machine_id', '=', machineId)
    .orderBy('next_send_at')
    .limit(sql.lit(BATCH_PER_HOST)),
);

function limitsOf({ now }: Tx): { now: number; tooLate: number } {
  return { now, tooLate: now + LONGEST_RESEND_MS };
}

/**
 * Selects due commands, also those due later than a resend can be: after the wall clock was set back, they would wait too long.
 */
function due({ now, tooLate }: { now: number; tooLate: number }) {
  return query
    .selectFrom('commands')
    .where('state', '=', sql.lit('open'))
    .where((eb) => eb.or([eb('next_send_at', '<=', now), eb('next_send_at', '>', tooLate)]));
}

interface Prepared {
  command: CommandRow;
  message: ControlMessage | undefined;
  /** Why there is no message. */
  obstacle?: string;
}

function prepare(core: Core, tx: Tx, command: CommandRow): Prepared {
  const attempts = command.attempts + 1;
  const sending = { attempts, next_send_at: tx.now + resendDelayMs(attempts) };
  tx.run(updateRows('commands', sending, { id: command.id }));
  const startsRun = command.kind === 'provision' || command.kind === 'start';
  if (startsRun && command.attempts === 0) openChargeWindow(tx, command.instance_id);
  try {
    const message: ControlMessage = { message: { $case: 'command', value: toWire(core, tx, command) } };
    // Sending a message that cannot be encoded would end the machine's stream, so encode it here first.
    ControlMessage.encode(message);
    return { command, message };
  } catch (error) {
    return { command, message: undefined, obstacle: messageOf(error) };
  }
}

/** Makes a command due again soon, because the stream did not take it. The attempt does not count. */
function putBack(tx: Tx, { id, attempts }: CommandRow): void {
  const again = { attempts, next_send_at: tx.now + CONGESTED_RETRY_MS };
  tx.run(query.updateTable('commands').set(again).where('id', '=', id).where('state', '=', sql.lit('open')));
}

/** Returns the protocol's message: the whole desired state, so that no command depends on an earlier one. */
function toWire(core: Core, tx: Tx, command: CommandRow): Command {
  const identity = {
    commandId: command.id,
    instanceId: command.instance_id,
    sequence: command.sequence,
    requestId: command.request_id ?? '',
    access: command.kind === 'destroy' ? undefined : accessOf(core, findInstance(tx, command.instance_id)),
  };
  switch (command.kind) {
    case 'provision':
    case 'start':
      return {
        ...identity,
        desired: {
          $case: 'running',
          value: { mayCreate: command.kind === 'provision', spec: specOf(core, tx, command) },
        },
      };
    case 'stop':
    case 'release':
      return { ...identity, desired: { $case: 'stopped', value: { releaseGpus: command.kind === 'release' } } };
    case 'destroy':
      return { ...identity, desired: { $case: 'absent', value: {} } };
    case 'access':
      return { ...identity, desired: { $case: 'kept', value: {} } };
  }
}

function originOf(encryption: Encryption, instance: Instance, { sshAuthorizedKey }: Workload): string {
  const { id, organization_id, template_id, offer_id, label, disk_gb } = instance;
  const { price_per_hour_micro, storage_price_per_gb_hour_micro, release_stopped_after_ms } = instance;
  const { stop_at, max_charge_micro, idle_stop_minutes, api_key_id } = instance;
  return sealOrigin(encryption, {
    instance_id: id,
    organization_id,
    template_id,
    offer_id,
    label,
    ssh_public_key: sshAuthorizedKey,
    disk_gb,
    price_per_hour_micro,
    storage_price_per_gb_hour_micro,
    release_stopped_after_ms,
    stop_at,
    max_charge_micro,
    idle_stop_minutes,
    api_key_id,
  });
}

function specOf({ encryption }: Core, tx: Tx, command: CommandRow): WorkloadSpec {
  const instance = findInstance(tx, command.instance_id);
  if (!instance?.workload_encrypted) throw new Error(`instance ${command.instance_id} has no workload any more`);
  const workload = decryptWorkload(encryption, instance.workload_encrypted);
  return { ...workload, origin: originOf(encryption, instance, workload), gpuUuids: gpusOf(tx, instance.id) };
}
