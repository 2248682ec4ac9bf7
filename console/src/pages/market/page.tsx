import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { misfitOf } from '../../data/instances/fit.js';
import type { Offer, OfferCounts, Template } from '../../data/api/models.js';
import { freeOffers, offerCounts, type Wanted } from '../../data/instances/offers.js';
import { itemsOf } from '../../data/api/pages.js';
import { useMay } from '../../data/api/rights.js';
import { useTemplates } from '../../data/instances/templates.js';
import { LinkButton } from '../../parts/controls/button.js';
import { OfferList, OfferRow } from '../../parts/market/offer-row.js';
import { Older } from '../../parts/controls/older.js';
import { Page } from '../../parts/layout/page.js';
import { Loaded, Skeleton } from '../../parts/controls/states.js';
import { Filters } from './filters.js';
import { Nothing } from './nothing.js';
import styles from './page.module.css';
import { wantedOf } from './search.js';

const route = getRouteApi('/market');

/** Offers that are read at a time. */
const ROWS = 50;

export default function MarketPage() {
  const search = route.useSearch();
  const { template, templates, hasMore, isPending } = useTemplates(search.template);
  return (
    <Page title="Market" lead="What can I rent for this?">
      {/* What fits is asked for by the template, and an address can name one that is none. */}
      {search.template !== undefined && isPending ? (
        <Skeleton rows={8} />
      ) : (
        <Market wanted={wantedOf(search, template?.id)} template={template} templates={templates} hasMore={hasMore} />
      )}
    </Page>
  );
}

interface MarketProps {
  wanted: Wanted;
  template: Template | undefined;
  templates: readonly Template[];
  /** Whether there are more templates than these. */
  hasMore: boolean;
}

function Market({ wanted, template, templates, hasMore }: MarketProps) {
  const query = useInfiniteQuery(freeOffers(wanted, ROWS));
  const counts = useQuery(offerCounts(wanted));
  return (
    <>
      <Loaded query={counts} rows={2}>
        {(counted) => (
          <>
            <Filters counts={counted} templates={templates} hasMore={hasMore} />
            <p className={styles.count} role="status">
              {wordsOf(counted, template)}
            </p>
          </>
        )}
      </Loaded>
      <Loaded query={query} rows={8}>
        {(read) => {
          const found = itemsOf(read);
          return found.length === 0 ? (
            <Nothing templateId={template?.id} />
          ) : (
            <Offers found={found} template={template} />
          );
        }}
      </Loaded>
      <Older query={query}>Show more</Older>
    </>
  );
}

function wordsOf({ offers, fitting }: OfferCounts, template: Template | undefined): string {
  const all = offers === 1 ? '1 offer' : `${offers} offers`;
  return template && fitting !== null ? `${all}, ${fitting} for ${template.name}` : all;
}

function Offers({ found, template }: { found: readonly Offer[]; template: Template | undefined }) {
  const mayDeploy = useMay('change');
  return (
    <OfferList>
      {found.map((offer) => {
        const misfit = template && misfitOf(template, offer.machine);
        return (
          <OfferRow key={offer.id} offer={offer} misfit={misfit} heading="h2">
            {misfit === undefined && mayDeploy && (
              <LinkButton
                kind="main"
                to="/deploy"
                search={{ offer: offer.id, ...(template && { template: template.id }) }}
              >
                Deploy
              </LinkButton>
            )}
          </OfferRow>
        );
      })}
    </OfferList>
  );
}
