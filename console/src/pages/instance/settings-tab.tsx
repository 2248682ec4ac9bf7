import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { api } from '../../data/api.js';
import { noteInstance } from '../../data/instance-acts.js';
import { fromLimits, limitFaults, toLimits } from '../../data/limits.js';
import type { Instance } from '../../data/models.js';
import { useMay } from '../../data/rights.js';
import { Button } from '../../parts/button.js';
import { Field, Input } from '../../parts/field.js';
import { LimitFields } from '../../parts/limit-fields.js';
import { Section } from '../../parts/page.js';
import { ErrorBox } from '../../parts/states.js';
import { say } from '../../parts/toast.js';
import styles from './page.module.css';
import { ScheduleForm } from './schedule-form.js';

/** The label, the limits and the schedule of an instance. Those whose role only reads cannot change them, and nobody once it is destroyed. */
export function SettingsTab({ instance }: { instance: Instance }) {
  const { id } = instance;
  const queries = useQueryClient();
  const mayChange = useMay('change') && instance.status !== 'destroying' && instance.status !== 'destroyed';
  const [label, setLabel] = useState(instance.label ?? '');
  const [typed, setTyped] = useState(() => fromLimits(instance));
  const faults = limitFaults(typed);
  const save = useMutation({
    mutationFn: () =>
      api.patch('/v1/instances/{id}', {
        ...{ params: { path: { id } }, body: { label: label.trim() === '' ? null : label.trim(), ...toLimits(typed) } },
      }),
    onSuccess: (changed) => {
      noteInstance(queries, changed);
      say('The settings are saved');
    },
  });
  return (
    <>
      <Section title="Label and limits">
        <form
          onSubmit={(event) => {
            event.preventDefault();
            if (Object.keys(faults).length === 0) save.mutate();
          }}
        >
          <fieldset className={styles.form} disabled={!mayChange}>
            <Field label="Label" hint="Up to 64 characters; empty: the name of the template.">
              {(tied) => (
                <Input {...tied} maxLength={64} value={label} onChange={(event) => setLabel(event.target.value)} />
              )}
            </Field>
            <LimitFields typed={typed} faults={faults} onChange={setTyped} />
          </fieldset>
          {save.error && <ErrorBox error={save.error} />}
          {mayChange && (
            <Button type="submit" kind="main" isBusy={save.isPending}>
              Save the label and the limits
            </Button>
          )}
        </form>
      </Section>
      <ScheduleForm id={id} mayChange={mayChange} />
    </>
  );
}
