import { useState } from 'react';
import { exactMoney, hourlyMoney, parseMoney } from '../../../../data/values/money.js';
import { Button } from '../../../../parts/controls/button.js';
import { Confirm } from '../../../../parts/controls/dialog.js';
import { Field, Input, Select } from '../../../../parts/forms/field.js';
import { Form } from '../../../../parts/forms/form.js';
import type { OperatedOffer } from '../../models.js';
import styles from '../../operator.module.css';
import { countRentals } from '../rentals.js';
import { faultsOf, type PriceDraft } from './new-prices.js';

interface Props {
  /** The chosen offers that are shown. */
  offers: readonly OperatedOffer[];
  hasFailed: boolean;
  draft: PriceDraft;
  isBusy: boolean;
  onChange: (draft: PriceDraft) => void;
  onSubmit: () => void;
}

const PER = [
  { value: 'gpu', label: 'each GPU of an offer' },
  { value: 'offer', label: 'all GPUs of an offer together' },
] as const;

/** Asks for the new prices of the chosen offers. */
export function PriceForm({ offers, hasFailed, draft, isBusy, onChange, onSubmit }: Props) {
  const [isTried, setTried] = useState(false);
  const [isAsked, setAsked] = useState(false);
  const verb = hasFailed ? 'Try again' : 'Reprice';
  const faults = isTried ? faultsOf(draft) : {};
  const submit = () => {
    setTried(true);
    if (offers.length > 0 && Object.keys(faultsOf(draft)).length === 0) setAsked(true);
  };
  const money = (name: 'price' | 'storage') => ({
    inputMode: 'decimal' as const,
    value: draft[name],
    onChange: ({ target }: React.ChangeEvent<HTMLInputElement>) => onChange({ ...draft, [name]: target.value }),
  });
  return (
    <Form onSubmit={submit} aria-label="New prices">
      <div className={styles.filter}>
        <Field label="New price in dollars per hour" hint="Empty: it stays." error={faults.price}>
          {(tied) => <Input {...tied} {...money('price')} />}
        </Field>
        <Field label="The price is for">
          {(tied) => (
            <Select {...tied} choices={PER} value={draft.per} onChoose={(per) => onChange({ ...draft, per })} />
          )}
        </Field>
        <Field label="New price of the disk" hint="In dollars per GB and hour. Empty: it stays." error={faults.storage}>
          {(tied) => <Input {...tied} {...money('storage')} />}
        </Field>
      </div>
      <p className={styles.note} role="status">
        {consequence(offers)}
      </p>
      <p className={styles.after}>
        <Button kind="main" type="submit" isBusy={isBusy} disabled={offers.length === 0} aria-haspopup="dialog">
          {hasFailed ? 'Try again with' : 'Reprice'} {countOf(offers.length)}
        </Button>
      </p>
      <Confirm
        title={`Change the prices of ${countOf(offers.length)}`}
        verb={verb}
        kind="main"
        isOpen={isAsked}
        onConfirm={() => {
          setAsked(false);
          onSubmit();
        }}
        onClose={() => setAsked(false)}
      >
        <p>{pricesIn(draft)}</p>
        <p>{consequence(offers)}</p>
      </Confirm>
    </Form>
  );
}

/** Returns the new prices in words. */
function pricesIn({ price, per, storage }: PriceDraft): string {
  const [micro, disk] = [parseMoney(price), parseMoney(storage)];
  return [
    ...(micro === undefined
      ? []
      : [`${hourlyMoney(micro)} for ${PER.find(({ value }) => value === per)?.label ?? ''}.`]),
    ...(disk === undefined ? [] : [`The disk: ${exactMoney(disk)} per GB and hour.`]),
  ].join(' ');
}

function consequence(offers: readonly OperatedOffer[]): string {
  if (offers.length === 0) return 'Choose offers below. Instances keep the price of their deploy.';
  const count = countRentals(offers);
  return count === 0
    ? 'No instance rents them: the new prices are for those that are deployed from now on.'
    : `${count === 1 ? 'The instance that rents them keeps its price' : `The ${count} instances that rent them keep their prices`}: the new ones are for those that are deployed from now on.`;
}

function countOf(offers: number): string {
  return offers === 1 ? '1 offer' : `${offers} offers`;
}
