import { HALF_TYPED, type LimitFaults, type TypedLimits } from '../../data/instances/limits.js';
import { Field, Input, Select } from './field.js';

interface LimitFieldsProps {
  typed: TypedLimits;
  faults: LimitFaults;
  onChange: (typed: TypedLimits) => void;
}

const ON_LIMIT = [
  { value: 'stop', label: 'Stop it, and keep its disk' },
  { value: 'destroy', label: 'Destroy it, and its disk' },
] as const;

/** The limits of an instance: when, at which cost or after how much idleness it ends, and how. */
export function LimitFields({ typed, faults, onChange }: LimitFieldsProps) {
  const set = (changed: Partial<TypedLimits>) => onChange({ ...typed, ...changed });
  const setStop = ({ value, validity }: HTMLInputElement) => set({ stopAt: validity.badInput ? HALF_TYPED : value });
  // From nothing to a half, and back, the value stays empty, and the browser tells of no change.
  const noteHalf = (input: HTMLInputElement) => {
    if (input.validity.badInput !== (typed.stopAt === HALF_TYPED)) setStop(input);
  };
  return (
    <>
      <Field name="stop_at" label="Stop at" hint="In your time zone." error={faults.stopAt}>
        {(tied) => (
          <Input
            {...tied}
            type="datetime-local"
            value={typed.stopAt === HALF_TYPED ? '' : typed.stopAt}
            onChange={({ target }) => setStop(target)}
            onKeyUp={({ currentTarget }) => noteHalf(currentTarget)}
            onBlur={({ currentTarget }) => noteHalf(currentTarget)}
          />
        )}
      </Field>
      <Field
        name="max_charge_micro"
        label="At most, in $"
        hint="GPU time and disk in all; no GPU time beyond it is charged."
        error={faults.maxCharge}
      >
        {(tied) => (
          <Input
            {...tied}
            inputMode="decimal"
            value={typed.maxCharge}
            onChange={(event) => set({ maxCharge: event.target.value })}
          />
        )}
      </Field>
      <Field
        name="idle_stop_minutes"
        label="After idle minutes"
        hint="You are told ten minutes before."
        error={faults.idleMinutes}
      >
        {(tied) => (
          <Input
            {...tied}
            inputMode="numeric"
            value={typed.idleMinutes}
            onChange={(event) => set({ idleMinutes: event.target.value })}
          />
        )}
      </Field>
      <Field name="on_limit" label="What a limit does">
        {(tied) => (
          <Select {...tied} choices={ON_LIMIT} value={typed.onLimit} onChoose={(onLimit) => set({ onLimit })} />
        )}
      </Field>
    </>
  );
}
