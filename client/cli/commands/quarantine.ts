import type { components } from '../../api/index.js';
import { findTemplate } from '../deploy/templates.js';
import { only } from '../instances/find.js';
import type { Define } from '../invocation/define.js';
import { findOrganization } from '../operator/find.js';
import type { Column } from '../output/table.js';
import { minuteOf } from '../output/times.js';
import { confirm } from '../prompts/confirm.js';
import { whole, withYes } from './options.js';

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

interface Adoption {
  organization?: string;
  template?: string;
  offer?: string;
  disk?: number;
}

export const define: Define = (command, invocation) => {
  const all = async () => (await invocation.gpurent().get('/v1/operator/quarantine')).items;
  const find = async (wanted: string) =>
    only(await all(), wanted, 'workload', ({ id }) => ({ id, name: null }), 'gpurent quarantine');
  const list = async () => invocation.list(await all(), COLUMNS, 'There are no such workloads.');
  command.action(list);
  command.command('list').description('workloads on hosts that the database does not know').action(list);
  command
    .command('adopt <workload>')
    .description('make it an instance; what is not given is as in the deploy that has made it')
    .option('--organization <organization>', 'who pays for it from now on')
    .option('--template <template>', 'what runs there')
    .option('--offer <id>', 'whose prices it has from now on')
    .option('--disk <gb>', 'how large its disk is', whole(10, 20_000))
    .action(async (wanted: string, { organization, template, offer, disk }: Adoption) => {
      const gpurent = invocation.gpurent();
      const { id } = await find(wanted);
      const body = {
        ...(organization === undefined ? {} : { organization_id: (await findOrganization(gpurent, organization)).id }),
        ...(template === undefined ? {} : { template_id: (await findTemplate(gpurent, template)).id }),
        ...(offer === undefined ? {} : { offer_id: offer }),
        ...(disk === undefined ? {} : { disk_gb: disk }),
      };
      const instance = await gpurent.post('/v1/operator/quarantine/{id}/adopt', { params: { path: { id } }, body });
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
