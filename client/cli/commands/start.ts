import { act } from '../instances/act.js';
import type { Define } from '../invocation/define.js';
import { INSTANCE } from './options.js';

export const define: Define = (command, invocation) => {
  command
    .argument(...INSTANCE)
    .option('--wait', 'until it is running')
    .action((name: string, { wait }: { wait?: true }) =>
      act(invocation, name, 'running', wait, (gpurent, id) =>
        gpurent.post('/v1/instances/{id}/start', { params: { path: { id } } }),
      ),
    );
};
