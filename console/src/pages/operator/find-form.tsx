import { useState } from 'react';
import { Button } from '../../parts/controls/button.js';
import { Field, Input } from '../../parts/forms/field.js';
import { Form } from '../../parts/forms/form.js';
import styles from './operator.module.css';

interface Props {
  label: string;
  hint: string;
  /** What is looked for now. Give it as `key`, too: a new address begins anew. */
  value: string;
  onFind: (text: string) => void;
}

/** A field for what to look for. Nothing, looked for, shows everything again. */
export function FindForm({ label, hint, value, onFind }: Props) {
  const [text, setText] = useState(value);
  return (
    <Form className={styles.narrow} role="search" onSubmit={() => onFind(text.trim())}>
      <Field label={label} hint={hint}>
        {(tied) => (
          <Input {...tied} type="search" maxLength={254} value={text} onChange={(e) => setText(e.target.value)} />
        )}
      </Field>
      <div className={styles.acts}>
        <Button type="submit">Find</Button>
      </div>
    </Form>
  );
}
