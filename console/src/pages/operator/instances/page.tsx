import { getRouteApi, Link } from '@tanstack/react-router';
import { Page } from '../../../parts/layout/page.js';
import { Empty } from '../../../parts/controls/states.js';
import { isId } from '../ids.js';
import { InstanceTabs } from '../instance-tabs.js';
import { InstancesTable } from '../instances-table.js';
import { InstanceFilters } from './filters.js';
import { filterOf, type InstancesSearch } from './search.js';

const route = getRouteApi('/operator/instances');

export default function OperatedInstancesPage() {
  const search = route.useSearch();
  const filter = filterOf(search);
  return (
    <Page title="All instances" lead="What is rented, and what does it wait for?">
      <InstanceTabs shown="all" />
      <InstanceFilters search={search} />
      {search.id === undefined || isId(search.id) ? (
        <InstancesTable of={filter} empty={<NothingFound search={search} />} />
      ) : (
        <NothingFound search={search} />
      )}
    </Page>
  );
}

function NothingFound({ search }: { search: InstancesSearch }) {
  if (Object.keys(search).length === 0)
    return <Empty title="Nothing is rented">Here are the instances of all organizations that are not destroyed.</Empty>;
  return (
    <p role="status">
      {search.id === undefined ? 'No instance is like this.' : `No such instance has the id “${search.id}”.`}{' '}
      <Link to="/operator/instances">Show all</Link>
    </p>
  );
}
