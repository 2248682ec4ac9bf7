import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import type { Offer } from '../../data/models.js';
import { offers, templates } from '../../data/queries.js';
import { LinkButton } from '../../parts/button.js';
import { Page } from '../../parts/page.js';
import { Empty, Loaded } from '../../parts/states.js';
import { ranked } from './choice.js';
import { Filters } from './filters.js';
import { OfferRow } from './offer-row.js';
import styles from './page.module.css';

const route = getRouteApi('/market');

export default function MarketPage() {
  const query = useQuery(offers);
  return (
    <Page title="Market" lead="What can I rent for this?">
      <Loaded query={query} rows={8}>
        {(items) =>
          items.length === 0 ? (
            <Empty title="Nothing is free at present">What others give back appears here by itself.</Empty>
          ) : (
            <Offers items={items} />
          )
        }
      </Loaded>
    </Page>
  );
}

function Offers({ items }: { items: readonly Offer[] }) {
  const search = route.useSearch();
  const { data: known = [] } = useQuery(templates);
  const template = known.find(({ id }) => id === search.template);
  const found = ranked(items, search, template);
  return (
    <>
      <Filters offers={items} templates={known} />
      <p className={styles.count} role="status">
        {found.length === 1 ? '1 offer' : `${found.length} offers`}
        {template && `, ${found.filter(({ misfit }) => misfit === undefined).length} for ${template.name}`}
      </p>
      {found.length === 0 ? (
        <Empty
          title="Nothing is free that is like this"
          action={
            <LinkButton to="/market" search={{}}>
              Show everything
            </LinkButton>
          }
        />
      ) : (
        <ul className={styles.list}>
          {found.map(({ offer, misfit }) => (
            <OfferRow key={offer.id} offer={offer} misfit={misfit} template={search.template} />
          ))}
        </ul>
      )}
    </>
  );
}
