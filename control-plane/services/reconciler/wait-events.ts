import { MINUTE_MS } from '../../../shared/time.js';
import type { CommandKind } from '../../domain/instances/command.js';
import { GRACE_MS } from '../../domain/deadlines.js';
import { WAIT_WORDS, type HostTrouble } from '../../domain/instances/wait.js';
import { compileOnce, listIn, query, sql } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import { forEachInOwnTransaction } from '../system/for-each.js';
import type { Platform } from '../system/platform.js';
import { eventsOfKind, recordNote } from '../events/timeline.js';

const EVERY_MS = 5_000;
/** Shortest wait that is told: a host that dials again, or a restart of Docker, is shorter. */
const TELL_AFTER_MS = 10_000;
/** Shortest time between two events of the same kind, for a host that comes and goes. */
const TELL_AGAIN_MS = 10 * MINUTE_MS;

type Reason = Exclude<HostTrouble, 'obstacle'>;

interface Waiting {
  id: string;
  instance_id: string;
  machine_id: string;
  kind: CommandKind;
}

/** A time over which a command has waited for the same reason. `since` is in monotonic milliseconds. */
interface Spell {
  reason: Reason;
  since: number;
  isTold: boolean;
}

const WORDS: Readonly<Record<CommandKind, string>> = {
  provision: 'the deploy',
  start: 'the start',
  stop: 'the stop',
  release: 'the release of the GPUs',
  destroy: 'the removal',
  access: 'the replacement of the access',
};

/**
 * Makes the worker that tells renters, in the timeline, that a command waits for a host which is not connected or whose Docker does not
 * answer. It looks every five seconds and tells once for each wait. Waits are kept in memory. In the first two minutes of a
 * control plane, while hosts connect again, it tells nothing. Returns the number of events.
 */
export function waitTellerOf(platform: Platform): () => { told: number } {
  let spells: ReadonlyMap<string, Spell> = new Map();
  let dueAt = 0;
  return () => {
    const now = platform.clock.monotonic();
    if (now < dueAt || now - platform.bootedAt < GRACE_MS) return { told: 0 };
    dueAt = now + EVERY_MS;
    const waiting = platform.store.transact((tx) => findWaiting(platform, tx));
    spells = new Map(waiting.map(({ id, reason }) => [id, spellOf(spells.get(id), reason, now)]));
    const due = waiting.filter(({ id }) => {
      const spell = spells.get(id);
      return spell !== undefined && !spell.isTold && now - spell.since >= TELL_AFTER_MS;
    });
    return { told: forEachInOwnTransaction(platform, due, (tx, command) => tell(tx, command, spells.get(command.id))) };
  };
}

function spellOf(before: Spell | undefined, reason: Reason, now: number): Spell {
  return before?.reason === reason ? before : { reason, since: now, isTold: false };
}

/** Returns open commands whose hosts cannot carry them out now, without those of lost machines, which nobody waits for. */
function findWaiting({ connections }: Platform, tx: Tx): (Waiting & { reason: Reason })[] {
  const machines = tx.all(machinesWithOpen({})).flatMap(({ machine_id }) => {
    const trouble = connections.troubleOf(machine_id);
    return trouble === 'host_away' || trouble === 'docker_down' ? [[machine_id, trouble] as const] : [];
  });
  if (machines.length === 0) return [];
  const reasons = new Map(machines);
  return tx.all(openOn({ machines: JSON.stringify([...reasons.keys()]) })).flatMap((command) => {
    const reason = reasons.get(command.machine_id);
    return reason ? [{ ...command, reason }] : [];
  });
}

const open = query.selectFrom('commands').where('commands.state', '=', sql.lit('open'));

const machinesWithOpen = compileOnce(() => open.select('machine_id').distinct());

const openOn = compileOnce(({ machines }: { machines: string }) =>
  open
    .innerJoin('instances', (join) =>
      join.onRef('instances.id', '=', 'commands.instance_id').onRef('instances.machine_id', '=', 'commands.machine_id'),
    )
    .innerJoin('machines', 'machines.id', 'commands.machine_id')
    .select(['commands.id', 'commands.instance_id', 'commands.machine_id', 'commands.kind'])
    .where('commands.machine_id', 'in', listIn(machines))
    .where('instances.status', '<>', sql.lit('destroyed'))
    .where('machines.lost_at', 'is', null),
);

function tell(tx: Tx, { instance_id, kind }: Waiting, spell: Spell | undefined): void {
  if (!spell) return;
  spell.isTold = true;
  const lately = eventsOfKind(instance_id, spell.reason).where('at', '>', tx.now - TELL_AGAIN_MS);
  if (tx.get(lately.limit(1))) return;
  recordNote(tx, instance_id, spell.reason, `${WORDS[kind]} waits: ${WAIT_WORDS[spell.reason]}`);
}
