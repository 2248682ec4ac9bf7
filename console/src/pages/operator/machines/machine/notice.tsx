import { useState } from 'react';
import { useAct } from '../../../../data/forms/act.js';
import { api } from '../../../../data/api/api.js';
import { Button } from '../../../../parts/controls/button.js';
import { Dialog, DialogActions } from '../../../../parts/controls/dialog.js';
import { Field, Input } from '../../../../parts/forms/field.js';
import { Form, FormError } from '../../../../parts/forms/form.js';
import { say } from '../../../../parts/controls/toast.js';
import type { Machine } from '../../models.js';
import styles from '../../operator.module.css';

/** Tells all renters of a machine something. What was typed stays until it is sent. */
export function Notice({ machine: { id, name } }: { machine: Machine }) {
  const [isOpen, setOpen] = useState(false);
  const [message, setMessage] = useState('');
  const close = () => setOpen(false);
  const send = useAct(
    () =>
      api.post('/v1/operator/machines/{id}/notice', { params: { path: { id } }, body: { message: message.trim() } }),
    [],
    ({ organizations }) => {
      close();
      setMessage('');
      say(`Told ${organizations} ${organizations === 1 ? 'organization' : 'organizations'}`);
    },
  );
  return (
    <>
      <Button onClick={() => setOpen(true)} aria-haspopup="dialog">
        Tell its renters
      </Button>
      <Dialog title={`Tell all renters of ${name} something`} isOpen={isOpen} onClose={close}>
        <Form className={styles.form} onSubmit={() => send.mutate()} error={send.error}>
          <p>
            Each organization with an instance on it gets an event, and its members a mail, where this control plane
            sends mail. Once in ten minutes, and it cannot be taken back.
          </p>
          <Field name="message" label="Message" hint="Plain text on one line.">
            {(tied) => (
              <Input
                {...tied}
                required
                maxLength={500}
                value={message}
                onChange={({ target }) => setMessage(target.value)}
              />
            )}
          </Field>
          <FormError />
          <DialogActions>
            <Button onClick={close}>Cancel</Button>
            <Button kind="main" type="submit" isBusy={send.isPending}>
              Tell them
            </Button>
          </DialogActions>
        </Form>
      </Dialog>
    </>
  );
}
