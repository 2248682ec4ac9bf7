import { Option } from 'commander';
import type { components } from '../../api/index.js';
import { findTemplate } from '../deploy/templates.js';
import type { Define } from '../invocation/define.js';
import type { Column } from '../output/table.js';

type Template = components['schemas']['Template'];

const COLUMNS: readonly Column<Template>[] = [
  { title: 'ID', of: ({ id }) => id.slice(0, 8) },
  { title: 'NAME', of: ({ name }) => name },
  { title: 'BY', of: ({ visibility, publisher }) => publisher ?? visibility, yields: 2 },
  {
    title: 'KIND',
    of: ({ kind, mode }) => [kind === 'vm' ? 'vm' : null, ...mode].filter(Boolean).join(', '),
    yields: 1,
  },
  { title: 'IMAGE', of: ({ image }) => image, yields: 4 },
  { title: 'DESCRIPTION', of: ({ description }) => description, yields: 3 },
];

interface Wanted {
  tab?: 'recommended' | 'system' | 'public' | 'organization';
  mode?: 'ssh' | 'jupyter';
}

export const define: Define = (command, invocation) => {
  command
    .addOption(new Option('--tab <tab>', 'only these').choices(['recommended', 'system', 'public', 'organization']))
    .addOption(new Option('--mode <mode>', 'only with this').choices(['ssh', 'jupyter']))
    .action(async (query: Wanted) => {
      const { items } = await invocation.gpurent().get('/v1/templates', { params: { query } });
      invocation.list(items, COLUMNS, 'There are no such templates.');
    });
  command
    .command('show <template>')
    .description('one template, by its id, the beginning of it, or its name')
    .action(async (name: string) => {
      const template = await findTemplate(invocation.gpurent(), name);
      invocation.facts(template, [
        ['id', template.id],
        ['name', template.name],
        ['by', template.publisher ?? template.visibility],
        ['kind', template.kind],
        ['image', template.image],
        ['CUDA from', template.cuda_min ?? null],
        ['CUDA to', template.cuda_max],
        ['ports', template.ports.map(({ port, protocol, label }) => `${port}/${protocol} ${label}`).join(', ')],
        ['variables', template.env.map(({ key }) => key).join(', ')],
        ['description', template.description],
      ]);
    });
};
