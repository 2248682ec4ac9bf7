import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { api } from '../../data/api.js';
import { changedFields } from '../../data/changed-fields.js';
import { noteInstance } from '../../data/instance-acts.js';
import { changedLimits, fromLimits, limitFaults, type TypedLimits } from '../../data/limits.js';
import type { Instance } from '../../data/models.js';
import { useMay } from '../../data/rights.js';
import { Button } from '../../parts/button.js';
import { Field, Input } from '../../parts/field.js';
import { Form, FormError } from '../../parts/form.js';
import { LeaveQuestion } from '../../parts/leave-question.js';
import { LimitFields } from '../../parts/limit-fields.js';
import { Section } from '../../parts/page.js';
import { say } from '../../parts/toast.js';
import styles from './page.module.css';
import { ScheduleForm } from './schedule-form.js';

type Typed = TypedLimits & { label: string };

/** The label, the limits and the schedule of an instance. Those whose role only reads cannot change them, and nobody once it is destroyed. */
export function SettingsTab({ instance }: { instance: Instance }) {
  const { id } = instance;
  const queries = useQueryClient();
  const mayChange = useMay('change') && instance.status !== 'destroying' && instance.status !== 'destroyed';
  const before: Typed = { label: instance.label ?? '', ...fromLimits(instance) };
  // What nobody has typed here follows what others change meanwhile.
  const [edited, setEdited] = useState<Partial<Typed>>({});
  const typed = { ...before, ...edited };
  const edit = (to: Partial<Typed>) =>
    setEdited((known) => ({ ...known, ...changedFields<Partial<Typed>>(typed, to) }));
  const faults = limitFaults(typed);
  const save = useMutation({
    mutationFn: () => {
      const label = typed.label.trim() === '' ? null : typed.label.trim();
      const body = { ...(label !== instance.label && { label }), ...changedLimits(before, typed) };
      return api.patch('/v1/instances/{id}', { params: { path: { id } }, body });
    },
    onSuccess: (changed) => {
      noteInstance(queries, changed);
      setEdited({});
      say('The settings are saved');
    },
  });
  return (
    <>
      <Section title="Label and limits">
        <Form onSubmit={() => Object.keys(faults).length === 0 && save.mutate()} error={save.error}>
          <fieldset className={styles.form} disabled={!mayChange}>
            <Field name="label" label="Label" hint="Up to 64 characters; empty: the name of the template.">
              {(tied) => (
                <Input
                  {...tied}
                  maxLength={64}
                  value={typed.label}
                  onChange={({ target }) => edit({ label: target.value })}
                />
              )}
            </Field>
            <LimitFields typed={typed} faults={faults} onChange={edit} />
          </fieldset>
          <FormError />
          {mayChange && (
            <Button type="submit" kind="main" isBusy={save.isPending}>
              Save the label and the limits
            </Button>
          )}
          <LeaveQuestion
            what="label and the limits"
            isDirty={() => mayChange && Object.keys(changedFields(before, typed)).length > 0}
          />
        </Form>
      </Section>
      <ScheduleForm id={id} mayChange={mayChange} />
    </>
  );
}
