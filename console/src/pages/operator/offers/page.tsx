import { getRouteApi, Link } from '@tanstack/react-router';
import { api } from '../../../data/api/api.js';
import { ConfirmButton } from '../../../parts/controls/confirm-button.js';
import { LinkButton } from '../../../parts/controls/button.js';
import { Hourly, Money } from '../../../parts/values/money.js';
import { Page } from '../../../parts/layout/page.js';
import { Empty } from '../../../parts/controls/states.js';
import { TabLinks } from '../../../parts/layout/tab-links.js';
import { Table } from '../../../parts/layout/table.js';
import type { OperatedOffer } from '../models.js';
import styles from '../operator.module.css';
import { Paged } from '../paged.js';
import { OPERATED } from '../queries.js';
import { CreateDialog } from './create-dialog.js';
import { OfferState } from './offer-state.js';
import { Rentals } from './rentals.js';
import { nameOf, Reprice } from './reprice.js';

const route = getRouteApi('/operator/offers');

export default function OperatedOffersPage() {
  const { withdrawn = false } = route.useSearch();
  const create = (
    <LinkButton kind="main" to="/operator/offers" search={{ machine: '' }} aria-haspopup="dialog">
      Make an offer
    </LinkButton>
  );
  return (
    <Page
      title="Offers"
      lead="What can be rented, and at which price?"
      actions={
        <>
          <LinkButton to="/operator/offers/prices" search={{}}>
            Change many prices
          </LinkButton>
          {create}
        </>
      }
    >
      <CreateDialog />
      <TabLinks
        label="Offers"
        tabs={[
          { title: 'On the market', to: '/operator/offers', search: {}, isActive: !withdrawn },
          { title: 'Withdrawn', to: '/operator/offers', search: { withdrawn: true }, isActive: withdrawn },
        ]}
      />
      <Paged
        name={['offers', withdrawn ? 'withdrawn' : 'on the market']}
        read={(query, signal) => api.get('/v1/operator/offers', { params: { query: { ...query, withdrawn } }, signal })}
        empty={
          withdrawn ? (
            <Empty title="No offer was withdrawn">Here are the offers that nobody can rent any more.</Empty>
          ) : (
            <Empty title="Nothing is on the market" action={create}>
              Nobody can rent a machine before you offer its GPUs at a price.
            </Empty>
          )
        }
      >
        {(offers) => <Offers offers={offers} />}
      </Paged>
    </Page>
  );
}

function Offers({ offers }: { offers: readonly OperatedOffer[] }) {
  return (
    <Table
      label="Offers"
      rows={offers}
      keyOf={({ id }) => id}
      isWeak={({ state }) => state === 'withdrawn'}
      columns={[
        {
          title: 'GPUs',
          cell: ({ num_gpus, gpu_model, machine: { id, name } }) => (
            <>
              <span className={styles.name}>
                {num_gpus} × {gpu_model ?? 'GPU'}
              </span>
              <span className={styles.weak}>
                of{' '}
                <Link to="/operator/machines/$id" params={{ id }}>
                  {name}
                </Link>
              </span>
            </>
          ),
        },
        { title: 'State', cell: (offer) => <OfferState offer={offer} /> },
        { title: 'Price', cell: (offer) => <Hourly micro={offer.price_per_hour_micro} />, isNumber: true },
        { title: 'Rented', cell: (offer) => <Rentals offer={offer} /> },
        {
          title: 'Disk per GB and hour',
          cell: (offer) => <Money micro={offer.storage_price_per_gb_hour_micro} />,
          isNumber: true,
        },
        {
          title: 'Releases GPUs',
          cell: ({ release_stopped_after_hours: hours }) => (hours === null ? 'never' : `after ${hours} h`),
        },
        {
          title: 'Acts',
          cell: (offer) =>
            offer.state !== 'withdrawn' && (
              <div className={styles.acts}>
                <Reprice offer={offer} />
                <Withdraw offer={offer} />
              </div>
            ),
        },
      ]}
    />
  );
}

function Withdraw({ offer }: { offer: OperatedOffer }) {
  return (
    <ConfirmButton
      label="Withdraw"
      about={nameOf(offer)}
      title={`Withdraw ${nameOf(offer)} for good`}
      act={() => api.delete('/v1/operator/offers/{id}', { params: { path: { id: offer.id } } })}
      old={[...OPERATED, ['offers']]}
    >
      <p>Nobody can rent it any more. Instances that were deployed on it stay, at their price.</p>
    </ConfirmButton>
  );
}
