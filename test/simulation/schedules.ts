import { MINUTE_MS } from '../../shared/time.js';
import { GRACE_MS } from '../../control-plane/domain/deadlines.js';
import { WEEKDAYS, type ScheduleAction, type ScheduleEntry } from '../../control-plane/domain/instances/schedule.js';
import { removeSchedule, replaceSchedule } from '../../control-plane/services/actions/schedules.js';
import { TICK_MS } from './control-plane.js';
import { EPOCH_MS } from './timeline.js';
import { first, type Invariants, type ScheduleRow, type View } from './view.js';
import type { World } from './world.js';

const ZONES = ['UTC', 'Europe/Berlin', 'Australia/Lord_Howe'];
/** How long the worker may take: schedules of all instances become due in one run. */
const SLACK_MS = 6 * TICK_MS;

/** What the clock of the control plane shows, right or wrong. */
const wallOf = ({ timeline, controlPlane }: World) => EPOCH_MS + timeline.now + controlPlane.wall.offset;

const clocks = new Map<string, Intl.DateTimeFormat>();

/** The local time, HH:MM. */
function localTime(timeZone: string, at: number): string {
  const clock = clocks.get(timeZone) ?? new Intl.DateTimeFormat('sv-SE', { timeZone, timeStyle: 'short' });
  clocks.set(timeZone, clock);
  return clock.format(at);
}

/** A renter has an instance started and stopped each day at times that come soon, or does not want that any more. */
export function plan(world: World): void {
  const { random, controlPlane } = world;
  const live = world.rows<{ id: string; organization_id: string }>(
    "SELECT id, organization_id FROM instances WHERE status NOT IN ('destroying', 'destroyed')",
  );
  const instance = random.pick(live);
  const owner = world.renters.find(({ organizationId }) => organizationId === instance?.organization_id);
  if (!instance || !owner) return;
  const { id } = instance;
  world.plannedAt.set(id, world.timeline.now);
  if (random.chance(0.1)) {
    world.attempt(`unplan ${id}`, () => removeSchedule(controlPlane.platform, owner, id));
    return;
  }
  const time_zone = random.pick(ZONES) ?? 'UTC';
  const entries = Array.from({ length: random.between(1, 4) }, (): ScheduleEntry => {
    const at = localTime(time_zone, wallOf(world) + random.between(1, random.chance(0.5) ? 5 : 90) * MINUTE_MS);
    return { action: random.chance(0.5) ? 'stop' : 'start', days: [...WEEKDAYS], at };
  });
  world.attempt(`plan ${id}`, () => replaceSchedule(controlPlane.platform, owner, id, { time_zone, entries }));
}

/** Nobody wants anything of a schedule any more. */
export function unplanAll(world: World): void {
  for (const { id } of world.rows<ScheduleRow>('SELECT instance_id AS id FROM instance_schedules')) {
    const [row] = world.rows<{ organization_id: string }>('SELECT organization_id FROM instances WHERE id = ?', id);
    const owner = world.renters.find(({ organizationId }) => organizationId === row?.organization_id);
    if (owner) world.attempt(`unplan ${id}`, () => removeSchedule(world.controlPlane.platform, owner, id));
  }
}

/** The newest action from `next_at` up to a time: a search through each minute, apart from the server's own. */
function newestDue({ time_zone, entries, next_at }: ScheduleRow, until: number): ScheduleAction | undefined {
  const actions = JSON.parse(entries) as ScheduleEntry[];
  for (let at = until - (until % MINUTE_MS); at >= next_at; at -= MINUTE_MS) {
    const now = actions.filter((entry) => entry.at === localTime(time_zone, at)).map(({ action }) => action);
    if (now.length > 0) return now.includes('stop') ? 'stop' : 'start';
  }
  return undefined;
}

const UP = ['creating', 'starting', 'running'];

/** Whether the clock was set, or believed, since the last look or a little before. */
function isClockNew({ jumpedAt, confirmedAt, lookedAt }: World): boolean {
  return Math.max(jumpedAt, confirmedAt) >= lookedAt - SLACK_MS;
}

function isUndone(view: View, was: ScheduleRow, action: ScheduleAction): boolean {
  const { id } = was;
  const [before, now] = [view.before?.instances.get(id)?.status ?? '', view.instances.get(id)?.status ?? ''];
  const became = view.edges.filter((edge) => edge.instance_id === id).map((edge) => edge.became as string);
  const seen = [before, now, ...became];
  if (action === 'stop') return seen.every((status) => status === 'running');
  const told = view.events.some((event) => event.instance_id === id && event.type === 'instance.schedule_refused');
  return !told && !seen.some((status) => UP.includes(status));
}

export const SCHEDULED: Invariants = {
  'what a schedule has to do is done, or told of': (view) =>
    first(view.before?.schedules.values() ?? [], (was) => {
      const { world, schedules } = view;
      const now = schedules.get(was.id);
      const isReplaced = (world.plannedAt.get(was.id) ?? -Infinity) >= world.lookedAt;
      if (!now || isReplaced || isClockNew(world) || now.next_at <= was.next_at) return undefined;
      // What came due between the run of the worker and this look is still to come.
      const due = newestDue(was, now.next_at - MINUTE_MS);
      return due && isUndone(view, was, due) ? `the ${due} of ${was.id} was due and left out` : undefined;
    }),

  'nothing that is due is left lying': ({ world, schedules, instances }) => {
    const { controlPlane, timeline, upSince, witness } = world;
    const held = world.rows("SELECT 1 FROM meta WHERE key = 'clock_step'").length > 0;
    const able = Math.max(upSince + GRACE_MS, world.jumpedAt, world.confirmedAt) + SLACK_MS;
    if (!controlPlane.alive || held || timeline.now < able) return undefined;
    return first(schedules.values(), (row) => {
      const lateMs = wallOf(world) - row.next_at;
      const since = (map: ReadonlyMap<string, number>) => timeline.now - (map.get(row.id) ?? timeline.now);
      const settledMs = Math.max(since(witness.runningSince), since(witness.downSince));
      if (row.needs_resync === 1 || row.start_command !== null || Math.min(lateMs, settledMs) <= SLACK_MS)
        return undefined;
      const due = newestDue(row, wallOf(world) - SLACK_MS);
      return (
        due && `the ${due} of ${row.id}, which is ${instances.get(row.id)?.status}, was due ${lateMs / 1000} s ago`
      );
    });
  },
};
