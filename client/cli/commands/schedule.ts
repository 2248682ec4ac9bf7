import type { components } from '../../api/index.js';
import { usageError } from '../errors/cli-error.js';
import { findInstance } from '../instances/find.js';
import type { Invocation } from '../invocation/invocation.js';
import { minuteOf } from '../output/times.js';
import type { Define } from '../invocation/define.js';
import { INSTANCE, several } from './options.js';

type Schedule = components['schemas']['InstanceSchedule'];
type Entry = Schedule['entries'][number];

const DAYS = ['monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday', 'sunday'] as const;

interface Times {
  start?: string[];
  stop?: string[];
  timeZone?: string;
}

export const define: Define = (command, invocation) => {
  const idOf = async (name: string) => ({
    params: { path: { id: (await findInstance(invocation.gpurent(), name)).id } },
  });
  command.argument(...INSTANCE).action(async (name: string) => {
    show(invocation, await invocation.gpurent().get('/v1/instances/{id}/schedule', await idOf(name)));
  });
  command
    .command('set')
    .description('replace the schedule of an instance')
    .argument(...INSTANCE)
    .option('--start <times>', 'when it is started, as mon-fri@08:00; can be given several times', several)
    .option('--stop <times>', 'when it is stopped, as mon-fri@18:30; can be given several times', several)
    .option('--time-zone <zone>', 'otherwise that of this machine')
    .action(async (name: string, { start = [], stop = [], timeZone }: Times) => {
      const entries = [...start.map((text) => entryOf('start', text)), ...stop.map((text) => entryOf('stop', text))];
      const time_zone = timeZone ?? Intl.DateTimeFormat().resolvedOptions().timeZone;
      const init = { ...(await idOf(name)), body: { time_zone, entries } };
      show(invocation, await invocation.gpurent().put('/v1/instances/{id}/schedule', init));
    });
  command
    .command('remove')
    .description('end the schedule of an instance')
    .argument(...INSTANCE)
    .action(async (name: string) => {
      await invocation.gpurent().delete('/v1/instances/{id}/schedule', await idOf(name));
      invocation.note('It has no schedule any more.');
    });
};

function show(invocation: Invocation, schedule: Schedule): void {
  invocation.object(schedule, () => [
    ...(schedule.time_zone === null ? ['no schedule'] : [`time zone ${schedule.time_zone}`]),
    ...schedule.entries.map(({ action, days, at }) => `${action} at ${at} on ${days.join(', ')}`),
    ...(schedule.next ? [`next: ${schedule.next.action} at ${minuteOf(schedule.next.at)}`] : []),
  ]);
}

/** Reads `mon-fri@08:00`, `sat,sun@10:00` or `daily@07:30`. Throws a usage error for anything else. */
export function entryOf(action: Entry['action'], text: string): Entry {
  const [, days = '', at = ''] = /^([a-z,-]+)@(\d\d:\d\d)$/.exec(text.toLowerCase()) ?? [];
  const chosen = days === 'daily' ? [...DAYS] : days.split(',').flatMap(daysIn);
  if (chosen.length === 0 || at === '')
    throw usageError(
      `"${text}" are no times of the week`,
      'Give them like mon-fri@08:00, sat,sun@10:00 or daily@07:30.',
    );
  return { action, days: DAYS.filter((day) => chosen.includes(day)), at };
}

function daysIn(part: string): Entry['days'] {
  const [from = -1, to = from] = part
    .split('-')
    .map((name) => DAYS.findIndex((day) => name.length >= 3 && day.startsWith(name)));
  if (from < 0 || to < 0) return [];
  return from <= to ? DAYS.slice(from, to + 1) : [...DAYS.slice(from), ...DAYS.slice(0, to + 1)];
}
