import type { components } from '../../api/index.js';
import type { Define } from '../invocation/define.js';
import { dollars } from '../output/money.js';
import type { Column } from '../output/table.js';
import { minuteOf } from '../output/times.js';

type Organization = components['schemas']['OperatedOrganization'];

const COLUMNS: readonly Column<Organization>[] = [
  { title: 'ID', of: ({ id }) => id.slice(0, 8) },
  { title: 'NAME', of: ({ name }) => name },
  { title: 'BALANCE', of: ({ balance_micro }) => dollars(balance_micro), align: 'right' },
  {
    title: 'STATE',
    of: ({ suspension, payments_frozen }) => (suspension ? 'suspended' : payments_frozen ? 'disputed' : 'ok'),
  },
  { title: 'CREATED', of: ({ created_at }) => minuteOf(created_at), yields: 1 },
];

export const define: Define = (command, invocation) => {
  command.action(async () => {
    const { items } = await invocation.gpurent().get('/v1/operator/organizations');
    invocation.list(items, COLUMNS, 'There are no organizations.');
  });
};
