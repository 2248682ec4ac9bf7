import type { Instance } from '../../api/index.js';
import type { Define } from '../invocation/define.js';
import { dollars } from '../output/money.js';
import type { Column } from '../output/table.js';
import { ago } from '../output/times.js';

export const define: Define = (command, invocation) => {
  command.option('--all', 'also those that are destroyed').action(async ({ all }: { all?: true }) => {
    const query = all ? { include_destroyed: true } : {};
    const { items } = await invocation.gpurent().get('/v1/instances', { params: { query } });
    invocation.list(items, columns(invocation.terminal.now()), 'You have no instances. Rent one: gpurent deploy');
  });
};

const columns = (now: number): Column<Instance>[] => [
  { title: 'ID', of: ({ id }) => id.slice(0, 8) },
  { title: 'LABEL', of: ({ label }) => label, yields: 1 },
  { title: 'STATUS', of: ({ status }) => status },
  { title: 'SINCE', of: ({ status_changed_at }) => ago(status_changed_at, now), yields: 4 },
  { title: '$/HOUR', of: ({ price_per_hour_micro }) => dollars(price_per_hour_micro), align: 'right', yields: 2 },
  { title: 'SPENT', of: ({ spend_micro }) => dollars(spend_micro), align: 'right', yields: 3 },
  { title: 'TEMPLATE', of: ({ template }) => template.name, yields: 5 },
  {
    title: 'SSH',
    of: ({ ssh_host, ssh_port }) => (ssh_host === null ? null : `${ssh_host}:${ssh_port ?? ''}`),
    yields: 6,
  },
  { title: 'ERROR', of: ({ error_code }) => error_code, yields: 7 },
];
