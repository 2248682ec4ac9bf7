import { Marked } from '../../../parts/values/status.js';
import type { OperatedOffer } from '../models.js';
import styles from '../operator.module.css';

const SHAPES = { available: 'dot', unavailable: 'ring', withdrawn: 'dash' } as const;

/** The state of an offer, and why nobody can rent it now. */
export function OfferState({ offer: { state, unavailable_reason } }: { offer: OperatedOffer }) {
  return (
    <>
      <Marked shape={SHAPES[state]}>{state}</Marked>
      {unavailable_reason !== null && <span className={styles.weak}>{unavailable_reason}</span>}
    </>
  );
}
