import { Field, Input } from '../../../parts/forms/field.js';
import type { TermsDraft, TermsFaults } from './terms.js';

interface Props {
  draft: TermsDraft;
  faults: TermsFaults;
  onChange: (draft: TermsDraft) => void;
}

/** What an offer costs, and how long stopped instances keep its GPUs. */
export function TermsFields({ draft, faults, onChange }: Props) {
  const input = (name: keyof TermsDraft) => ({
    inputMode: 'decimal' as const,
    value: draft[name],
    onChange: ({ target }: React.ChangeEvent<HTMLInputElement>) => onChange({ ...draft, [name]: target.value }),
  });
  return (
    <>
      <Field
        name="price_per_hour_micro"
        label="Price in dollars per hour"
        hint="For all GPUs of the offer together."
        error={faults.price}
      >
        {(tied) => <Input {...tied} {...input('price')} />}
      </Field>
      <Field
        name="storage_price_per_gb_hour_micro"
        label="Price of the disk in dollars per GB and hour"
        error={faults.storage}
      >
        {(tied) => <Input {...tied} {...input('storage')} />}
      </Field>
      <Field
        name="release_stopped_after_hours"
        label="Release the GPUs of stopped instances after hours"
        hint="Nothing: a stopped instance keeps its GPUs."
        error={faults.release}
      >
        {(tied) => <Input {...tied} {...input('release')} inputMode="numeric" />}
      </Field>
    </>
  );
}
