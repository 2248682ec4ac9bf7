import { Hourly } from '../../../parts/values/money.js';
import type { OperatedOffer } from '../models.js';
import styles from '../operator.module.css';

/** How many instances rent an offer, and at which prices. */
export function Rentals({ offer: { rentals } }: { offer: OperatedOffer }) {
  if (rentals.length === 0) return <>not rented</>;
  return (
    <ul>
      {rentals.map(({ price_per_hour_micro, instances }) => (
        <li key={price_per_hour_micro} className={styles.time}>
          {instances} at <Hourly micro={price_per_hour_micro} />
        </li>
      ))}
    </ul>
  );
}

/** Returns how many instances rent the offers. */
export function countRentals(offers: readonly OperatedOffer[]): number {
  return offers.flatMap(({ rentals }) => rentals).reduce((sum, { instances }) => sum + instances, 0);
}
