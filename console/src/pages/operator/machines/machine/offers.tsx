import { api } from '../../../../data/api/api.js';
import { Hourly } from '../../../../parts/values/money.js';
import { Section } from '../../../../parts/layout/page.js';
import { Table } from '../../../../parts/layout/table.js';
import { OfferState } from '../../offers/offer-state.js';
import { Rentals } from '../../offers/rentals.js';
import styles from '../../operator.module.css';
import { Paged } from '../../paged.js';

/** The offers of a machine that are on the market, with their prices. */
export function MachineOffers({ id }: { id: string }) {
  const query = { machine_id: id, withdrawn: false };
  return (
    <Section title="Offers">
      <Paged
        name={['offers', 'of', id]}
        read={(page, signal) => api.get('/v1/operator/offers', { params: { query: { ...page, ...query } }, signal })}
        empty={<p className={styles.weak}>Nobody can rent its GPUs before they have a price.</p>}
      >
        {(offers) => (
          <Table
            label="Offers"
            rows={offers}
            keyOf={(offer) => offer.id}
            columns={[
              { title: 'GPUs', cell: ({ num_gpus, gpu_model }) => `${num_gpus} × ${gpu_model ?? 'GPU'}` },
              { title: 'State', cell: (offer) => <OfferState offer={offer} /> },
              { title: 'Price', cell: (offer) => <Hourly micro={offer.price_per_hour_micro} />, isNumber: true },
              { title: 'Rented', cell: (offer) => <Rentals offer={offer} /> },
            ]}
          />
        )}
      </Paged>
    </Section>
  );
}
