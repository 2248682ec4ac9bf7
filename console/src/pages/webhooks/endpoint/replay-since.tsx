import { useState } from 'react';
import { useAct } from '../../../data/forms/act.js';
import { api } from '../../../data/api/api.js';
import type { WebhookEndpoint } from '../../../data/api/models.js';
import { Button } from '../../../parts/controls/button.js';
import { Dialog, DialogActions } from '../../../parts/controls/dialog.js';
import { Field, Input } from '../../../parts/forms/field.js';
import { Form, FormError } from '../../../parts/forms/form.js';
import { say } from '../../../parts/controls/toast.js';
import styles from '../page.module.css';

/** Asks since when all events are sent again: for a program that was away, or has lost what it had. */
export function ReplaySince({ endpoint: { id, enabled } }: { endpoint: WebhookEndpoint }) {
  const [isOpen, setOpen] = useState(false);
  const [typed, setTyped] = useState('');
  const replay = useAct(
    (since: string) => api.post('/v1/webhook-endpoints/{id}/replay', { params: { path: { id } }, body: { since } }),
    [['webhooks'], ['audit-log']],
    ({ events }) => {
      setOpen(false);
      say(`${events} events are compared with its filters and sent`);
    },
  );
  return (
    <>
      <Button disabled={!enabled} onClick={() => setOpen(true)} aria-haspopup="dialog">
        Replay since…
      </Button>
      <Dialog title="Send again what has happened since" isOpen={isOpen} onClose={() => setOpen(false)}>
        <Form
          className={styles.form}
          onSubmit={() => replay.mutate(new Date(typed).toISOString())}
          error={replay.error}
        >
          <Field
            name="since"
            label="Since"
            hint="In your time zone. Events that it has had already have the same id as before."
          >
            {(tied) => (
              <Input
                {...tied}
                type="datetime-local"
                required
                value={typed}
                onChange={({ target }) => setTyped(target.value)}
              />
            )}
          </Field>
          <FormError />
          <DialogActions>
            <Button onClick={() => setOpen(false)}>Cancel</Button>
            <Button kind="main" type="submit" isBusy={replay.isPending}>
              Send again
            </Button>
          </DialogActions>
        </Form>
      </Dialog>
    </>
  );
}
