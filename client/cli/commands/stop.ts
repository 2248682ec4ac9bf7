import { act } from '../instances/act.js';
import type { Define } from '../invocation/define.js';
import { INSTANCE } from './options.js';

export const define: Define = (command, invocation) => {
  command
    .argument(...INSTANCE)
    .option('--wait', 'until it is stopped')
    .action((name: string, { wait }: { wait?: true }) =>
      act(invocation, name, 'stopped', wait, (gpurent, id) =>
        gpurent.post('/v1/instances/{id}/stop', { params: { path: { id } } }),
      ),
    );
};
