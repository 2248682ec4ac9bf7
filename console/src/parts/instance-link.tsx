import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { nameOf } from '../data/instances.js';
import { instances } from '../data/queries.js';
import { useMay } from '../data/rights.js';

/** Leads to an instance by its name; by its id, if it is not known or the reader may not read instances. */
export function InstanceLink({ id }: { id: string }) {
  const { data } = useQuery({ ...instances, enabled: useMay('read') });
  const instance = data?.find((each) => each.id === id);
  return (
    <Link to="/instances/$id" params={{ id }} title={id}>
      {instance ? nameOf(instance) : <code>{id}</code>}
    </Link>
  );
}
