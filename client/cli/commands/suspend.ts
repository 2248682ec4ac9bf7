import type { Define } from '../invocation/define.js';
import { findOrganization } from '../operator/find.js';
import { confirm } from '../prompts/confirm.js';
import { whole, withYes } from './options.js';

interface Options {
  reason: string;
  keepDisksDays?: number;
  yes?: true;
}

export const define: Define = (command, invocation) => {
  withYes(command.argument('<organization>', 'its id, the beginning of it, or its name'))
    .requiredOption('--reason <text>', 'why; its members read it')
    .option('--keep-disks-days <days>', 'then its instances are destroyed', whole(0, 365))
    .action(async (wanted: string, { reason, keepDisksDays, yes }: Options) => {
      const gpurent = invocation.gpurent();
      const { id, name } = await findOrganization(gpurent, wanted);
      await confirm(invocation, yes, `Suspend ${name} (${id}), and stop all that it runs`);
      const days = keepDisksDays === undefined ? {} : { keep_disks_days: keepDisksDays };
      const init = { params: { path: { id } }, body: { reason, ...days } };
      const organization = await gpurent.post('/v1/operator/organizations/{id}/suspend', init);
      invocation.object(organization, () => [`${name} is suspended. End it: gpurent restore ${id} --reason "..."`]);
    });
};
