import { MINUTE_MS } from '../../../shared/time.js';
import type { CommandKind } from '../../domain/command.js';
import { GRACE_MS } from '../../domain/deadlines.js';
import { WAIT_WORDS, type HostTrouble } from '../../domain/wait.js';
import { listOf, query, sql } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import { forEachInOwnTransaction } from '../system/for-each.js';
import type { Platform } from '../system/platform.js';
import { recordEvent } from '../system/timeline.js';

const EVERY_MS = 5_000;
/** A host that dials again, or a Docker that is restarted, is nothing to tell of. */
const TELL_AFTER_MS = 10_000;
/** A host that comes and goes is told of so often at most. */
const TELL_AGAIN_MS = 10 * MINUTE_MS;

type Reason = Exclude<HostTrouble, 'obstacle'>;

interface Waiting {
  id: string;
  instance_id: string;
  machine_id: string;
  kind: CommandKind;
}

/** For how long a command has waited for the same. */
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
  access: 'the replacement of its access',
};

/**
 * Tells renters, in the timeline, that a command of theirs waits for a host that is away or whose Docker does not answer: once a
 * spell, by a look every five seconds. Which spells there are is kept in memory; right after a start nobody is waited for yet. Answers how many were told.
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

/** Commands of hosts that are not there for them now; a machine that was declared lost is waited for by nobody. */
function findWaiting({ connections }: Platform, tx: Tx): (Waiting & { reason: Reason })[] {
  const open = query.selectFrom('commands').where('commands.state', '=', sql.lit('open'));
  const machines = tx.all(open.select('machine_id').distinct()).flatMap(({ machine_id }) => {
    const trouble = connections.troubleOf(machine_id);
    return trouble === 'host_away' || trouble === 'docker_down' ? [[machine_id, trouble] as const] : [];
  });
  if (machines.length === 0) return [];
  const reasons = new Map(machines);
  const waiting = tx.all(
    open
      .innerJoin('instances', (join) =>
        join
          .onRef('instances.id', '=', 'commands.instance_id')
          .onRef('instances.machine_id', '=', 'commands.machine_id'),
      )
      .innerJoin('machines', 'machines.id', 'commands.machine_id')
      .select(['commands.id', 'commands.instance_id', 'commands.machine_id', 'commands.kind'])
      .where('commands.machine_id', 'in', listOf([...reasons.keys()]))
      .where('instances.status', '<>', sql.lit('destroyed'))
      .where('machines.lost_at', 'is', null),
  );
  return waiting.flatMap((command) => {
    const reason = reasons.get(command.machine_id);
    return reason ? [{ ...command, reason }] : [];
  });
}

function tell(tx: Tx, { instance_id, kind }: Waiting, spell: Spell | undefined): void {
  if (!spell) return;
  spell.isTold = true;
  const told = query.selectFrom('instance_events').select('id').where('instance_id', '=', instance_id);
  const lately = told.where('kind', '=', spell.reason).where('at', '>', tx.now - TELL_AGAIN_MS);
  if (tx.get(lately.limit(1))) return;
  recordEvent(tx, instance_id, spell.reason, `${WORDS[kind]} waits: ${WAIT_WORDS[spell.reason]}`);
}
