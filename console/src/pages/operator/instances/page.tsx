import { getRouteApi, Link } from '@tanstack/react-router';
import { Page } from '../../../parts/page.js';
import { Empty } from '../../../parts/states.js';
import { InstanceTabs } from '../instance-tabs.js';
import { InstancesTable } from '../instances-table.js';
import { InstanceFilters } from './filters.js';
import { filterOf } from './search.js';

const route = getRouteApi('/operator/instances');

export default function OperatedInstancesPage() {
  const search = route.useSearch();
  const filter = filterOf(search);
  return (
    <Page title="All instances" lead="What is rented, and what does it wait for?">
      <InstanceTabs shown="all" />
      <InstanceFilters search={search} />
      <InstancesTable of={filter} empty={<NothingFound isFiltered={Object.keys(filter).length > 0} />} />
    </Page>
  );
}

function NothingFound({ isFiltered }: { isFiltered: boolean }) {
  if (!isFiltered)
    return <Empty title="Nothing is rented">Here are the instances of all organizations that are not destroyed.</Empty>;
  return (
    <p role="status">
      No instance is like this. <Link to="/operator/instances">Show all</Link>
    </p>
  );
}
