import type { Define } from '../invocation/define.js';
import { findOrganization } from '../operator/find.js';

export const define: Define = (command, invocation) => {
  command
    .argument('<organization>', 'its id, the beginning of it, or its name')
    .requiredOption('--reason <text>', 'why; its members read it')
    .action(async (wanted: string, { reason }: { reason: string }) => {
      const gpurent = invocation.gpurent();
      const { id, name } = await findOrganization(gpurent, wanted);
      const init = { params: { path: { id } }, body: { reason } };
      const organization = await gpurent.post('/v1/operator/organizations/{id}/restore', init);
      invocation.object(organization, () => [`${name} is not suspended any more.`]);
    });
};
