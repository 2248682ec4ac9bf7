import { NEED_AFTER_MS } from '../../domain/machines/need.js';
import { query, sql } from '../../store/sql.js';

/** Since when an open command makes no progress: since it was recorded, or since the host's last report of a deploy's progress. */
export const RESTS_SINCE = sql<number>`max(commands.created_at, iif(commands.kind = 'provision', ifnull(instances.progress_at, 0), 0))`;

/** Selects the commands that hosts have not finished, except those of machines that are declared lost. */
export function openCommands() {
  return query
    .selectFrom('commands')
    .innerJoin('machines', 'machines.id', 'commands.machine_id')
    .leftJoin('instances', 'instances.id', 'commands.instance_id')
    .where('commands.state', '=', sql.lit('open'))
    .where('machines.lost_at', 'is', null);
}

/** Returns the time since which a command that is stuck at `now` makes no progress. */
export function stuckCutoff(now: number): number {
  return now - NEED_AFTER_MS.command_stuck;
}

/** Selects those of them that are stuck, by one rule for the metric's alert, the overview and the event. */
export function stuckCommands(cutoff: number) {
  // The first condition follows from the second, and has an index.
  return openCommands().where('commands.created_at', '<', cutoff).where(RESTS_SINCE, '<', cutoff);
}
