import { act } from '../instances/act.js';
import { findInstance, nameOf } from '../instances/find.js';
import { confirm } from '../prompts/confirm.js';
import type { Define } from '../invocation/define.js';
import { INSTANCE, withYes } from './options.js';

export const define: Define = (command, invocation) => {
  withYes(command.argument(...INSTANCE))
    .option('--wait', 'until it is destroyed')
    .action(async (name: string, { yes, wait }: { yes?: true; wait?: true }) => {
      const instance = await findInstance(invocation.gpurent(), name);
      const { id, disk_gb } = instance;
      await confirm(invocation, yes, `Destroy ${nameOf(instance)} (${id}) with its disk of ${disk_gb} GB`);
      await act(invocation, id, 'destroyed', wait, (gpurent) =>
        gpurent.delete('/v1/instances/{id}', { params: { path: { id } } }),
      );
    });
};
