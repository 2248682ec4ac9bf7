import { useQueries } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { changedSearch } from '../../data/forms/changed-search.js';
import { offerCounts } from '../../data/instances/offers.js';
import { LinkButton } from '../../parts/controls/button.js';
import { Empty, Skeleton } from '../../parts/controls/states.js';
import { filtersOf, LOOSER, wantedOf, type MarketSearch } from './search.js';

const route = getRouteApi('/market');

/** Says that nothing is free, or nothing like what was asked for, and without which filter something is. */
export function Nothing({ templateId }: { templateId: string | undefined }) {
  const search = route.useSearch();
  if (filtersOf(search).length === 0)
    return <Empty title="Nothing is free at present">What others give back appears here by itself.</Empty>;
  return (
    <Empty title="Nothing is free that is like this" action={<Looser search={search} templateId={templateId} />}>
      What others give back, and is like this, appears here by itself.
    </Empty>
  );
}

/** What is found without each of the filters. */
function Looser({ search, templateId }: { search: MarketSearch; templateId: string | undefined }) {
  const choices = filtersOf(search).map((name) => ({ name, search: changedSearch(search, { [name]: undefined }) }));
  const counts = useQueries({ queries: choices.map((each) => offerCounts(wantedOf(each.search, templateId))) });
  const found = choices
    .map((each, index) => ({ ...each, offers: counts[index]?.data?.offers ?? 0 }))
    .filter(({ offers }) => offers > 0);
  if (counts.some(({ isPending }) => isPending)) return <Skeleton rows={choices.length} />;
  return (
    <>
      {found.length === 0 && choices.length > 1 && <p>Nothing is free without one of these filters either.</p>}
      {found.length > 0 && (
        <ul>
          {found.map(({ name, search: looser, offers }) => (
            <li key={name}>
              <Link to="/market" search={looser}>
                {LOOSER[name]}
              </Link>
              : {offers === 1 ? '1 offer' : `${offers} offers`}
            </li>
          ))}
        </ul>
      )}
      <LinkButton to="/market" search={{}}>
        Show everything
      </LinkButton>
    </>
  );
}
