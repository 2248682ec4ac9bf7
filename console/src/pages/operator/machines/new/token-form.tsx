import { useState } from 'react';
import { Button } from '../../../../parts/controls/button.js';
import { Form, FormError } from '../../../../parts/forms/form.js';
import { CountField } from '../../count-field.js';
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
  const submit = () => onSubmit({ max_uses: Number(uses), expires_in_hours: Number(hours) });
  return (
    <Form className={styles.after} onSubmit={submit} error={error}>
      <p className={styles.prose}>
        The line has a token. Whoever has it can enroll a host until it is used up or expires.
      </p>
      <div className={styles.filter}>
        <CountField name="max_uses" label="Hosts that it lets in" max={10_000} value={uses} onChange={setUses} />
        <CountField
          name="expires_in_hours"
          label="Hours for which it works"
          max={720}
          value={hours}
          onChange={setHours}
        />
      </div>
      <FormError />
      <Button kind={isFirst ? 'main' : 'quiet'} type="submit" isBusy={isBusy}>
        {isFirst ? 'Make the line to paste' : 'Make another line'}
      </Button>
    </Form>
  );
}
