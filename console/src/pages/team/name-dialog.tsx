import type { UseMutationResult } from '@tanstack/react-query';
import { useState } from 'react';
import { Button } from '../../parts/controls/button.js';
import { Dialog, DialogActions } from '../../parts/controls/dialog.js';
import { Field, Input } from '../../parts/forms/field.js';
import { Form, FormError } from '../../parts/forms/form.js';
import styles from './page.module.css';

interface Props {
  title: string;
  verb: string;
  name: string;
  hint?: string;
  act: UseMutationResult<unknown, Error, string>;
  onClose: () => void;
}

/** Asks for the name of an organization. */
export function NameDialog({ title, verb, name, hint = 'Up to 64 characters.', act, onClose }: Props) {
  const [typed, setTyped] = useState(name);
  return (
    <Dialog title={title} isOpen onClose={onClose}>
      <Form className={styles.form} onSubmit={() => act.mutate(typed.trim())} error={act.error}>
        <Field name="name" label="Name" hint={hint}>
          {(tied) => (
            <Input {...tied} required maxLength={64} value={typed} onChange={({ target }) => setTyped(target.value)} />
          )}
        </Field>
        <FormError />
        <DialogActions>
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="main" type="submit" isBusy={act.isPending}>
            {verb}
          </Button>
        </DialogActions>
      </Form>
    </Dialog>
  );
}
