import type { components } from '../../api/index.js';
import { only } from '../instances/find.js';
import type { Define } from '../invocation/define.js';
import type { Column } from '../output/table.js';
import { minuteOf } from '../output/times.js';
import { confirm } from '../prompts/confirm.js';
import { withYes } from './options.js';

type Workload = components['schemas']['QuarantinedWorkload'];

const COLUMNS: readonly Column<Workload>[] = [
  { title: 'ID', of: ({ id }) => id.slice(0, 8) },
  { title: 'MACHINE', of: ({ machine_name }) => machine_name },
  {
    title: 'STATE',
    of: ({ state, removal_requested_at }) => (removal_requested_at === null ? state : 'being removed'),
  },
  { title: 'GPUS', of: ({ gpu_uuids }) => gpu_uuids.length, align: 'right', yields: 1 },
  { title: 'IMAGE', of: ({ image }) => image, yields: 3 },
  { title: 'ORGANIZATION', of: ({ organization_name }) => organization_name, yields: 2 },
  { title: 'FOUND', of: ({ found_at }) => minuteOf(found_at), yields: 4 },
];

export const define: Define = (command, invocation) => {
  const all = async () => (await invocation.gpurent().get('/v1/operator/quarantine')).items;
  const find = async (wanted: string) =>
    only(await all(), wanted, 'workload', ({ id }) => ({ id, name: null }), 'gpurent quarantine');
  const list = async () => invocation.list(await all(), COLUMNS, 'There are no such workloads.');
  command.action(list);
  command.command('list').description('workloads on hosts that the database does not know').action(list);
  command
    .command('adopt <workload>')
    .description('make it an instance of the organization that has deployed it')
    .action(async (wanted: string) => {
      const { id } = await find(wanted);
      const init = { params: { path: { id } }, body: {} };
      const instance = await invocation.gpurent().post('/v1/operator/quarantine/{id}/adopt', init);
      invocation.object(instance, () => [`It is the instance ${instance.id} now.`]);
    });
  withYes(command.command('remove <workload>').description('remove it from its host, with its disk')).action(
    async (wanted: string, { yes }: { yes?: true }) => {
      const workload = await find(wanted);
      const { id, machine_name } = workload;
      await confirm(invocation, yes, `Remove the workload ${id} of ${machine_name} with its disk`);
      await invocation.gpurent().post('/v1/operator/quarantine/{id}/remove', { params: { path: { id } } });
      invocation.object(workload, () => [`${id} is being removed.`]);
    },
  );
};
