import { useState } from 'react';
import { useAct } from '../../../../data/forms/act.js';
import { api } from '../../../../data/api/api.js';
import { useNow } from '../../../../data/api/clock.js';
import { Button } from '../../../../parts/controls/button.js';
import { ConfirmButton } from '../../../../parts/controls/confirm-button.js';
import { Dialog, DialogActions } from '../../../../parts/controls/dialog.js';
import { Field, Input } from '../../../../parts/forms/field.js';
import { Form, FormError } from '../../../../parts/forms/form.js';
import { Section } from '../../../../parts/layout/page.js';
import { At } from '../../../../parts/values/time.js';
import type { Machine } from '../../models.js';
import styles from '../../operator.module.css';
import { OPERATED } from '../../queries.js';

/** When nothing can be deployed or started on a machine because somebody works on it. */
export function Maintenance({ machine: { id, name, maintenance } }: { machine: Machine }) {
  const now = useNow(10_000);
  const coming = maintenance !== null && Date.parse(maintenance.ends_at) > now ? maintenance : undefined;
  return (
    <Section title="Maintenance">
      <p className={styles.prose}>
        {coming ? (
          <>
            From <At at={coming.starts_at} /> until <At at={coming.ends_at} />. Nothing can be deployed or started then,
            or in the hour before.
          </>
        ) : (
          'No window is scheduled.'
        )}
      </p>
      <div className={styles.acts}>
        <Schedule id={id} name={name} />
        {coming && (
          <ConfirmButton
            label="Cancel the window"
            title={`Cancel the maintenance of ${name}`}
            kind="main"
            act={() => api.delete('/v1/operator/machines/{id}/maintenance', { params: { path: { id } } })}
            old={OPERATED}
          >
            <p>Instances can be deployed and started on it again.</p>
          </ConfirmButton>
        )}
      </div>
    </Section>
  );
}

function Schedule({ id, name }: { id: string; name: string }) {
  const [isOpen, setOpen] = useState(false);
  const [from, setFrom] = useState('');
  const [until, setUntil] = useState('');
  const close = () => setOpen(false);
  const schedule = useAct(
    () => {
      // The browser gives them in the reader's time zone.
      const body = { starts_at: new Date(from).toISOString(), ends_at: new Date(until).toISOString() };
      return api.put('/v1/operator/machines/{id}/maintenance', { params: { path: { id } }, body });
    },
    OPERATED,
    close,
  );
  return (
    <>
      <Button onClick={() => setOpen(true)} aria-haspopup="dialog">
        Schedule
      </Button>
      <Dialog title={`Schedule maintenance of ${name}`} isOpen={isOpen} onClose={close}>
        <Form className={styles.form} onSubmit={() => schedule.mutate()} error={schedule.error}>
          <p>
            Running instances keep running. Nothing can be deployed or started during the window, or in the hour before
            it.
          </p>
          <Field name="starts_at" label="From (your time zone)">
            {(tied) => (
              <Input {...tied} type="datetime-local" required value={from} onChange={(e) => setFrom(e.target.value)} />
            )}
          </Field>
          <Field name="ends_at" label="Until (your time zone)">
            {(tied) => (
              <Input
                {...tied}
                type="datetime-local"
                required
                value={until}
                onChange={(e) => setUntil(e.target.value)}
              />
            )}
          </Field>
          <FormError />
          <DialogActions>
            <Button onClick={close}>Keep it as it is</Button>
            <Button kind="main" type="submit" isBusy={schedule.isPending}>
              Schedule
            </Button>
          </DialogActions>
        </Form>
      </Dialog>
    </>
  );
}
