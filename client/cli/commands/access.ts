import { findInstance, nameOf, only } from '../instances/find.js';
import type { Define } from '../invocation/define.js';
import { INSTANCE } from './options.js';

export const define: Define = (command, invocation) => {
  command
    .argument(...INSTANCE)
    .option('--ssh-key <key>', 'the SSH key that can log in from now on: its name, its id, or the beginning of it')
    .action(async (name: string, { sshKey }: { sshKey?: string }) => {
      const gpurent = invocation.gpurent();
      const instance = await findInstance(gpurent, name);
      const { items } = sshKey === undefined ? { items: [] } : await gpurent.get('/v1/ssh-keys');
      const key = sshKey === undefined ? null : only(items, sshKey, 'SSH key', (each) => each, 'gpurent ssh-keys');
      const changed = await gpurent.post('/v1/instances/{id}/access', {
        params: { path: { id: instance.id } },
        body: { ssh_key_id: key?.id ?? null },
      });
      invocation.object(changed, () => [
        `The access of ${nameOf(changed)} is being replaced. See when it is done: gpurent events ${nameOf(changed)}`,
      ]);
    });
};
