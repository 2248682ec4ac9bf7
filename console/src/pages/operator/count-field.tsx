import type { ReactNode } from 'react';
import { Field, Input } from '../../parts/forms/field.js';

interface CountProps {
  /** The path of what it sends. */
  name: string;
  label: ReactNode;
  hint?: string;
  /** The most that the API takes. */
  max: number;
  value: string;
  onChange: (value: string) => void;
}

/** Asks for a whole number from one on. */
export function CountField({ name, label, hint, max, value, onChange }: CountProps) {
  return (
    <Field name={name} label={label} {...(hint !== undefined && { hint })}>
      {(tied) => (
        <Input
          {...tied}
          type="number"
          required
          min={1}
          max={max}
          value={value}
          onChange={({ target }) => onChange(target.value)}
        />
      )}
    </Field>
  );
}
