import { getRouteApi, Link } from '@tanstack/react-router';
import { useState } from 'react';
import { api } from '../../../../data/api/api.js';
import { Button, LinkButton } from '../../../../parts/controls/button.js';
import { classNames } from '../../../../parts/controls/class-names.js';
import { CheckBox } from '../../../../parts/forms/field.js';
import { Hourly, Money } from '../../../../parts/values/money.js';
import { Page } from '../../../../parts/layout/page.js';
import { Empty } from '../../../../parts/controls/states.js';
import { Marked } from '../../../../parts/values/status.js';
import { Table } from '../../../../parts/layout/table.js';
import type { OperatedOffer } from '../../models.js';
import styles from '../../operator.module.css';
import { Paged } from '../../paged.js';
import { OfferFilter } from '../filter.js';
import { Rentals } from '../rentals.js';
import { NO_PRICES, pricesFor, type PriceDraft } from './new-prices.js';
import { PriceForm } from './price-form.js';
import { useRepricing, type Outcome } from './repricing.js';
import type { PricesSearch } from './search.js';

const route = getRouteApi('/operator/offers/prices');

export default function PricesPage() {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  return (
    <Page
      title="Prices"
      lead="Change the prices of several offers at once."
      actions={<LinkButton to="/operator/offers">All offers</LinkButton>}
    >
      <OfferFilter chosen={search} onChoose={(chosen) => void navigate({ search: chosen })} />
      <Choice key={`${search.machine ?? ''} ${search.model ?? ''}`} {...search} />
    </Page>
  );
}

/** The offers that are like this, and what is chosen of them. With another filter all of it begins anew. */
function Choice({ machine, model }: PricesSearch) {
  const [draft, setDraft] = useState(NO_PRICES);
  const repricing = useRepricing();
  const filter = { ...(machine && { machine_id: machine }), ...(model && { gpu_model: model }), withdrawn: false };
  return (
    <Paged
      name={['offers', 'open', machine ?? '', model ?? '']}
      read={(query, signal) => api.get('/v1/operator/offers', { params: { query: { ...query, ...filter } }, signal })}
      empty={<Empty title="No such offer is on the market">Choose another model, or all.</Empty>}
    >
      {(offers) => <Prices offers={offers} draft={draft} setDraft={setDraft} repricing={repricing} />}
    </Paged>
  );
}

interface Props {
  offers: readonly OperatedOffer[];
  draft: PriceDraft;
  setDraft: (draft: PriceDraft) => void;
  repricing: ReturnType<typeof useRepricing>;
}

/** The offers that are shown, and those whose change has failed. Only what is shown and chosen is changed. */
function Prices({ offers: listed, draft, setDraft, repricing }: Props) {
  const { chosen, outcomes, isBusy, choose, reprice } = repricing;
  const ids = new Set(listed.map(({ id }) => id));
  // Such as one that was withdrawn meanwhile.
  const gone = [...outcomes.values()].flatMap(({ offer, error }) => (error && !ids.has(offer.id) ? [offer] : []));
  const offers = [...gone, ...listed];
  const picked = offers.filter(({ id }) => chosen.has(id));
  const isAll = picked.length === offers.length;
  return (
    <>
      <PriceForm
        draft={draft}
        isBusy={isBusy}
        offers={picked}
        onChange={setDraft}
        hasFailed={picked.some(({ id }) => outcomes.get(id)?.error !== undefined)}
        onSubmit={() => void reprice(picked.map((offer) => ({ offer, prices: pricesFor(offer, draft) })))}
      />
      <p className={styles.after}>
        <Button
          onClick={() =>
            choose(
              offers.map(({ id }) => id),
              !isAll,
            )
          }
        >
          {isAll ? 'Choose none' : `Choose all ${offers.length} that are shown`}
        </Button>
      </p>
      <Table
        label="Offers on the market"
        rows={offers}
        keyOf={({ id }) => id}
        columns={[
          {
            title: 'Offer',
            cell: ({ id, num_gpus, gpu_model, machine }) => (
              <>
                <CheckBox
                  label={
                    <span className={styles.model}>
                      {num_gpus} × {gpu_model ?? 'GPU'}
                    </span>
                  }
                  aria-label={`${num_gpus} × ${gpu_model ?? 'GPU'} of ${machine.name}`}
                  checked={chosen.has(id)}
                  disabled={isBusy}
                  onChange={({ target }) => choose([id], target.checked)}
                />
                <Link
                  className={classNames(styles.weak, styles.inset)}
                  to="/operator/machines/$id"
                  params={{ id: machine.id }}
                >
                  {machine.name}
                </Link>
              </>
            ),
          },
          { title: 'Price now', cell: (offer) => <Hourly micro={offer.price_per_hour_micro} />, isNumber: true },
          { title: 'New price', cell: (offer) => chosen.has(offer.id) && <NewPrice offer={offer} draft={draft} /> },
          {
            title: 'Disk per GB and hour',
            cell: (offer) => <Money micro={offer.storage_price_per_gb_hour_micro} />,
            isNumber: true,
          },
          { title: 'Rented', cell: (offer) => <Rentals offer={offer} /> },
          { title: 'Outcome', cell: ({ id }) => <OutcomeOf outcome={outcomes.get(id)} /> },
        ]}
      />
    </>
  );
}

function NewPrice({ offer, draft }: { offer: OperatedOffer; draft: PriceDraft }) {
  const { price_per_hour_micro: price, storage_price_per_gb_hour_micro: storage } = pricesFor(offer, draft);
  return (
    <>
      {price !== undefined && <Hourly micro={price} />}
      {storage !== undefined && (
        <span className={styles.weak}>
          disk <Money micro={storage} />
        </span>
      )}
    </>
  );
}

function OutcomeOf({ outcome }: { outcome: Outcome | undefined }) {
  if (outcome === undefined) return null;
  if (outcome.error === undefined) return <Marked shape="dot">repriced</Marked>;
  return (
    <>
      <Marked shape="square">not repriced</Marked>
      <span className={styles.text}>{outcome.error.message}</span>
    </>
  );
}
