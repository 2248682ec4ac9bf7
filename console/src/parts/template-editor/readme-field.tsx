import { useDeferredValue, useState } from 'react';
import { Field, TextArea } from '../forms/field.js';
import { Markdown } from '../values/markdown.js';
import type { FieldsProps } from './draft.js';
import styles from './template-form.module.css';

/** The readme, with how it will look. */
export function ReadmeField({ draft: { readme }, change }: Omit<FieldsProps, 'faults'>) {
  const [isShown, setShown] = useState(false);
  const shown = useDeferredValue(readme);
  return (
    <>
      <Field name="readme" label="How to use it" hint="In Markdown. HTML and pictures are shown as text.">
        {(tied) => (
          <TextArea
            {...tied}
            rows={8}
            maxLength={65_536}
            value={readme}
            onChange={({ target }) => change({ readme: target.value })}
          />
        )}
      </Field>
      <details className={styles.preview} onToggle={(event) => setShown(event.currentTarget.open)}>
        <summary>How it will look</summary>
        {isShown && <Markdown text={shown} />}
      </details>
    </>
  );
}
