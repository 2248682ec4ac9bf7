import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { useState } from 'react';
import type { Offer } from '../../data/models.js';
import { offers, templates } from '../../data/queries.js';
import { useMay } from '../../data/rights.js';
import { Button, LinkButton } from '../../parts/button.js';
import { OfferList, OfferRow } from '../../parts/market/offer-row.js';
import { Page } from '../../parts/page.js';
import { Empty, Loaded } from '../../parts/states.js';
import { ranked } from './choice.js';
import { Filters } from './filters.js';
import styles from './page.module.css';

const route = getRouteApi('/market');

/** Rows that are made at a time: nobody reads thousands, and each takes a third of a millisecond. */
const ROWS = 100;

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
        <Rows key={JSON.stringify(search)} found={found} template={search.template} />
      )}
    </>
  );
}

function Rows({ found, template }: { found: ReturnType<typeof ranked>; template: string | undefined }) {
  const [count, setCount] = useState(ROWS);
  const mayDeploy = useMay('change');
  const search = template === undefined ? {} : { template };
  return (
    <>
      <OfferList>
        {found.slice(0, count).map(({ offer, misfit }) => (
          <OfferRow key={offer.id} offer={offer} misfit={misfit} heading="h2">
            {misfit === undefined && mayDeploy && (
              <LinkButton kind="main" to="/deploy" search={{ offer: offer.id, ...search }}>
                Deploy
              </LinkButton>
            )}
          </OfferRow>
        ))}
      </OfferList>
      {found.length > count && (
        <p className={styles.more}>
          <Button onClick={() => setCount(count + ROWS)}>Show more</Button>
        </p>
      )}
    </>
  );
}
