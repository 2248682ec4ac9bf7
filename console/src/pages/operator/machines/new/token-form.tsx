import { useState, type SyntheticEvent } from 'react';
import { Button } from '../../../../parts/button.js';
import { Field, Input } from '../../../../parts/field.js';
import { ErrorBox } from '../../../../parts/states.js';
import styles from '../../operator.module.css';

/** How many hosts a token lets in, and for how long, as the API takes it. */
export interface TokenTerms {
  max_uses: number;
  expires_in_hours: number;
}

interface Props {
  isFirst: boolean;
  isBusy: boolean;
  error: Error | null;
  onSubmit: (terms: TokenTerms) => void;
}

/** Asks how many hosts the line is for, and for how long it works. */
export function TokenForm({ isFirst, isBusy, error, onSubmit }: Props) {
  const [uses, setUses] = useState('1');
  const [hours, setHours] = useState('24');
  const submit = (event: SyntheticEvent) => {
    event.preventDefault();
    onSubmit({ max_uses: Number(uses), expires_in_hours: Number(hours) });
  };
  return (
    <form className={styles.after} onSubmit={submit}>
      <p className={styles.prose}>
        The line has a token. Whoever has it can enroll a host until it is used up or expires.
      </p>
      <div className={styles.filter}>
        <Field label="Hosts that it lets in">
          {(tied) => (
            <Input
              {...tied}
              type="number"
              required
              min={1}
              max={10_000}
              value={uses}
              onChange={(e) => setUses(e.target.value)}
            />
          )}
        </Field>
        <Field label="Hours for which it works">
          {(tied) => (
            <Input
              {...tied}
              type="number"
              required
              min={1}
              max={720}
              value={hours}
              onChange={(e) => setHours(e.target.value)}
            />
          )}
        </Field>
      </div>
      {error && <ErrorBox error={error} />}
      <Button kind={isFirst ? 'main' : 'quiet'} type="submit" isBusy={isBusy}>
        {isFirst ? 'Make the line to paste' : 'Make another line'}
      </Button>
    </form>
  );
}
