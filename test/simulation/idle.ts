import { MINUTE_MS } from '../../shared/time.js';
import { EPOCH_MS } from './timeline.js';
import { first, type Invariants, type View } from './view.js';

interface IdleStop {
  id: string;
  minutes: number;
  at: number;
  told_at: number | null;
}

const STOPS = `
  SELECT instance_id AS id, idle_stop_minutes AS minutes, at, (
    SELECT at FROM events AS told WHERE told.instance_id = stop.instance_id AND kind = 'idle' AND told.number < stop.number
    ORDER BY told.number DESC LIMIT 1
  ) AS told_at
  FROM events AS stop JOIN instances ON instances.id = instance_id
  WHERE kind = 'idle_stop' AND type = 'instance.status_changed' AND stream = ? AND number = ?`;

/** The newest minute may be so old, and two looks are so far apart. */
const NEWEST_MS = 100_000;
const LOOK_MS = 10_000;

function wrongWith({ world }: View, { id, minutes, at, told_at }: IdleStop): string | undefined {
  const habits = world.habits;
  if (told_at === null || at - told_at < 10 * MINUTE_MS)
    return `${id} was stopped ${at - (told_at ?? at)} ms after the word`;
  // A clock that was set tells other times than those in which people live.
  if (world.jumpedAt > -Infinity || !habits) return undefined;
  const begin = Math.min(at - minutes * MINUTE_MS + 2 * LOOK_MS, told_at);
  for (let time = begin - EPOCH_MS; time < at - EPOCH_MS - NEWEST_MS; time += LOOK_MS) {
    const habit = habits.of(id, time);
    if (habit !== 'idle') return `${id} was ${habit} ${(at - EPOCH_MS - time) / 1_000} s before its idle stop`;
  }
  return undefined;
}

export const IDLE: Invariants = {
  'only what was idle, and told so, is stopped for it': (view) =>
    first(view.events, ({ stream, number }) =>
      first(view.world.rows<IdleStop>(STOPS, stream, number), (stop) => wrongWith(view, stop)),
    ),
};

/** In the end. */
export const NOTHING_IDLES: Invariants = {
  'what is idle is stopped': ({ world }) =>
    first(
      world.rows<{ id: string; minutes: number; changed_at: number }>(
        "SELECT id, idle_stop_minutes AS minutes, status_changed_at AS changed_at FROM instances WHERE status = 'running' AND idle_stop_minutes IS NOT NULL",
      ),
      ({ id, minutes, changed_at }) => {
        const since = Math.max(changed_at - EPOCH_MS, world.habits?.quietFrom ?? Infinity);
        const idleMinutes = (world.timeline.now - since) / MINUTE_MS;
        return idleMinutes > Math.max(minutes, 11) + 4 ? `${id} is idle for ${idleMinutes} minutes` : undefined;
      },
    ),
};
