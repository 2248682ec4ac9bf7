import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { api } from '../api/api.js';
import type { Instance } from '../api/models.js';
import { instance as instanceQuery, instances } from '../api/queries.js';

/** More requests at once would keep everything else of the page waiting. */
const AT_ONCE = 4;

export type InstanceAct = Instance['allowed_actions'][number];

/** The words on the buttons. */
export const VERBS: Readonly<Record<InstanceAct, string>> = { start: 'Start', stop: 'Stop', destroy: 'Destroy' };

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

/** What became of an act on one instance; neither `changed` nor `error`: it has not answered yet. */
export interface Outcome {
  instance: Instance;
  changed?: Instance;
  error?: Error;
}

/** Starts, stops or destroys several instances, and says how each has answered until that is forgotten. */
export function useActs() {
  const queries = useQueryClient();
  const [act, setAct] = useState<InstanceAct>('stop');
  const [outcomes, setOutcomes] = useState<readonly Outcome[]>();
  const { mutateAsync } = useMutation({
    mutationFn: ({ act, id }: { act: InstanceAct; id: string }) => send(act, id),
    onSuccess: (changed) => noteInstance(queries, changed),
  });
  const note = (id: string, outcome: Omit<Outcome, 'instance'>) =>
    setOutcomes((known) => known?.map((each) => (each.instance.id === id ? { ...each, ...outcome } : each)));
  const begin = (asked: InstanceAct, targets: readonly Instance[]) => {
    setAct(asked);
    setOutcomes(targets.map((instance) => ({ instance })));
    void eachAtOnce(targets, AT_ONCE, ({ id }) =>
      mutateAsync({ act: asked, id }).then(
        (changed) => note(id, { changed }),
        (error: unknown) => note(id, { error: error as Error }),
      ),
    );
  };
  return { act, outcomes, begin, forget: () => setOutcomes(undefined) };
}

/** Calls `act` for each item in turn, for at most `most` at once. `act` does not reject. */
async function eachAtOnce<Item>(items: readonly Item[], most: number, act: (item: Item) => Promise<void>) {
  const waiting = items.values();
  const takeTurns = async () => {
    for (const item of waiting) await act(item);
  };
  await Promise.all(Array.from({ length: most }, takeTurns));
}

/** Writes an instance as an answer has it into what was read before. */
export function noteInstance(queries: ReturnType<typeof useQueryClient>, changed: Instance): void {
  queries.setQueryData(instanceQuery(changed.id).queryKey, changed);
  queries.setQueryData(instances.queryKey, (items) => items?.map((item) => (item.id === changed.id ? changed : item)));
}
