import { Option } from 'commander';
import type { components } from '../../api/index.js';
import { dollars } from '../output/money.js';
import type { Column } from '../output/table.js';
import { lasting } from '../output/lasting.js';
import type { Define } from '../invocation/define.js';

type Sum = components['schemas']['ChargeSum'];

const COLUMNS: readonly Column<Sum>[] = [
  { title: 'WHAT', of: ({ key, name }) => name ?? key },
  { title: 'GPU', of: ({ gpu_micro }) => dollars(gpu_micro), align: 'right', yields: 1 },
  { title: 'DISK', of: ({ disk_micro }) => dollars(disk_micro), align: 'right', yields: 1 },
  { title: 'TOTAL', of: ({ total_micro }) => dollars(total_micro), align: 'right' },
];

const GROUPS = ['instance', 'template', 'api_key', 'member', 'label', 'day'] as const;

interface Options {
  by: (typeof GROUPS)[number];
  from?: string;
  to?: string;
}

export const define: Define = (command, invocation) => {
  command
    .addOption(new Option('--by <group>', 'add up by').choices(GROUPS).default('instance'))
    .option('--from <day>', 'the first day, as 2026-11-01; otherwise 30 days ago')
    .option('--to <day>', 'the last day; otherwise today')
    .action(async (query: Options) => {
      const gpurent = invocation.gpurent();
      const organization = await gpurent.get('/v1/orgs/current');
      const { items } = await gpurent.get('/v1/billing/summary', { params: { query } });
      if (invocation.wantsJson) return invocation.json({ organization, items });
      const { name, balance_micro, burn_per_hour_micro, charged_per_hour_micro, lasts_until } = organization;
      const charged = { balanceMicro: balance_micro, chargedMicro: charged_per_hour_micro };
      const lasts = lasting({ ...charged, until: lasts_until }, invocation.terminal.now());
      invocation.line(`${name}: balance ${dollars(balance_micro)}, ${lasts}`);
      if (charged_per_hour_micro !== undefined)
        invocation.line(`Charged now: ${dollars(charged_per_hour_micro)} an hour.`);
      invocation.line(
        `A deploy needs a balance that covers ${dollars(burn_per_hour_micro)}: an hour of all that you have.`,
      );
      if (organization.payments_frozen) invocation.line('A payment is disputed: nothing can be deployed or started.');
      if (organization.suspension) invocation.line(`Suspended: ${organization.suspension.reason}`);
      invocation.line();
      invocation.list(items, COLUMNS, 'Nothing was charged in these days.');
    });
};
