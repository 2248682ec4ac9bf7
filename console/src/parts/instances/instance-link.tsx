import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { nameOf } from '../../data/instances/instances.js';
import { instances } from '../../data/api/queries.js';
import { useMay } from '../../data/api/rights.js';

function useInstances() {
  return useQuery({ ...instances, enabled: useMay('read') });
}

/** Tells whether names of instances are still being read: a table that shows them waits, because they have other widths than ids. */
export function useNamesPending(): boolean {
  return useInstances().isLoading;
}

/** Leads to an instance by its name; by its id, if it is not known or the reader may not read instances. */
export function InstanceLink({ id }: { id: string }) {
  const { data } = useInstances();
  const instance = data?.find((each) => each.id === id);
  return (
    <Link to="/instances/$id" params={{ id }} title={id}>
      {instance ? nameOf(instance) : <code>{id}</code>}
    </Link>
  );
}
