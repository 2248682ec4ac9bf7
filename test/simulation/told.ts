import { first, type Invariants } from './view.js';

interface Change {
  previous_status: string | null;
  status: string;
}

/** Events are what has happened: nothing is missing, nothing is told that did not happen, or was rolled back. */
export const TOLD: Invariants = {
  'every change of a status is told once, in its order': ({ events, edges, instances, before }) => {
    const changes = events
      .filter(({ type }) => type === 'instance.status_changed')
      .map(({ instance_id, data }) => ({ id: instance_id ?? '', ...(JSON.parse(data) as Change) }));
    const told = changes.map((change) => `${change.id} ${change.previous_status} ${change.status}`);
    const made = [...instances.keys()].filter((id) => before !== undefined && !before.instances.has(id));
    const created = told.filter((one) => one.includes(' null '));
    if (before !== undefined && created.length !== made.length)
      return `${made.length} were created, and told of were ${created.join()}`;
    const happened = edges.map(({ instance_id, was, became }) => `${instance_id} ${was} ${became}`);
    return first(new Set(changes.map(({ id }) => id).concat(edges.map(({ instance_id }) => instance_id))), (id) => {
      const of = (all: readonly string[]) => all.filter((one) => one.startsWith(id) && !one.includes(' null ')).join();
      return of(told) === of(happened) ? undefined : `told was ${of(told)}, and happened has ${of(happened)}`;
    });
  },

  'events of a stream have no gap': ({ events }) =>
    first(events, ({ number, due }) => (number === due ? undefined : `${number} came where ${due} was due`)),
};
