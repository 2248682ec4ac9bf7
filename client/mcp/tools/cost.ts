import { z } from 'zod';
import type { components } from '../../api/index.js';
import { answer, fitting } from '../answers.js';
import { coverage, dollars } from '../money.js';
import { addTool, type Toolbox } from '../tool.js';
import { untrustedOrNull } from '../untrusted.js';
import { balanceOf } from '../views.js';

const Day = z.iso.date();

/** Adds what shows what it has cost. */
export function addCostTool(toolbox: Toolbox): void {
  const { gpurent } = toolbox;
  addTool(toolbox, {
    name: 'cost',
    title: 'Show what it has cost',
    description:
      'Adds up what was charged, by instance, template, API key, member, label or day, and says what is charged per hour now and how long the balance lasts.',
    does: 'reads',
    input: z.object({
      by: z.enum(['instance', 'template', 'api_key', 'member', 'label', 'day']).default('instance'),
      from: Day.optional().describe('The first day, in UTC; 29 days before `to` if absent'),
      to: Day.optional().describe('The last day, in UTC; today if absent'),
      limit: z.int().min(1).max(100).default(30).describe('The most sums to return'),
    }),
    run: async ({ by, from, to, limit }) => {
      const query = { by, limit, ...(from === undefined ? {} : { from }), ...(to === undefined ? {} : { to }) };
      const { items, next_cursor } = await gpurent.get('/v1/billing/summary', { params: { query } });
      const balance = await balanceOf(gpurent);
      const { items: sums, left_out } = fitting(items, sumView);
      const more = left_out > 0 || Boolean(next_cursor);
      const { charged_per_hour_micro: charged, burn_per_hour_micro: burn } = balance;
      const now = `${charged == null ? '' : `${dollars(charged)} per hour is charged now. `}A deploy needs a balance that covers ${dollars(burn)}, an hour of all instances and disks.`;
      return answer(`${now} ${coverage(balance)}`, { by, sums, more, balance });
    },
  });
}

function sumView({ key, name, ...amounts }: components['schemas']['ChargeSum']) {
  return { key: untrustedOrNull(key), name: untrustedOrNull(name), ...amounts };
}
