import type { components } from '../../api/index.js';
import type { Invocation } from '../invocation/invocation.js';
import { dollars } from '../output/money.js';
import type { Define } from '../invocation/define.js';
import { limitOf, moneyOrOff, type OrOff } from './options.js';

type Caps = components['schemas']['SpendCaps'];

interface Options {
  hour?: OrOff;
  day?: OrOff;
  month?: OrOff;
}

export const define: Define = (command, invocation) => {
  command.action(async () => show(invocation, await invocation.gpurent().get('/v1/orgs/current/spend-caps')));
  command
    .command('set')
    .description('set caps of the organization; those that are not given stay')
    .option('--hour <dollars>', 'what all instances may cost an hour; or off', moneyOrOff)
    .option('--day <dollars>', 'what a day may cost; or off', moneyOrOff)
    .option('--month <dollars>', 'what a month may cost; or off', moneyOrOff)
    .action(async ({ hour, day, month }: Options) => {
      const gpurent = invocation.gpurent();
      const now = await gpurent.get('/v1/orgs/current/spend-caps');
      const body = {
        burn_per_hour_micro: hour === undefined ? now.burn_per_hour_micro : limitOf(hour),
        day_micro: day === undefined ? now.day_micro : limitOf(day),
        month_micro: month === undefined ? now.month_micro : limitOf(month),
      };
      show(invocation, await gpurent.put('/v1/orgs/current/spend-caps', { body }));
    });
};

function show(invocation: Invocation, caps: Caps): void {
  const of = (spent: number, cap: number | null) => `${dollars(spent)} of ${cap === null ? 'no cap' : dollars(cap)}`;
  invocation.facts(caps, [
    ['an hour', of(caps.present_burn_per_hour_micro, caps.burn_per_hour_micro)],
    ['today', of(caps.spent_day_micro, caps.day_micro)],
    ['this month', of(caps.spent_month_micro, caps.month_micro)],
  ]);
}
