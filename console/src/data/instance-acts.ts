import { useMutation, useQueryClient } from '@tanstack/react-query';
import { api } from './api.js';
import type { Instance } from './models.js';
import { instance as instanceQuery, instances } from './queries.js';

export type InstanceAct = Instance['allowed_actions'][number];

function send(act: InstanceAct, id: string): Promise<Instance> {
  const params = { path: { id } };
  if (act === 'destroy') return api.delete('/v1/instances/{id}', { params });
  return act === 'stop'
    ? api.post('/v1/instances/{id}/stop', { params })
    : api.post('/v1/instances/{id}/start', { params });
}

/** Starts, stops or destroys an instance, and shows the answer everywhere at once. */
export function useInstanceAct(id: string) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (act: InstanceAct) => send(act, id),
    onSuccess: (changed) => noteInstance(queries, changed),
  });
}

/** Writes an instance as an answer has it into what was read before. */
export function noteInstance(queries: ReturnType<typeof useQueryClient>, changed: Instance): void {
  queries.setQueryData(instanceQuery(changed.id).queryKey, changed);
  queries.setQueryData(instances.queryKey, (items) => items?.map((item) => (item.id === changed.id ? changed : item)));
}
