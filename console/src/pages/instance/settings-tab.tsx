import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { api } from '../../data/api/api.js';
import { stopsIn } from '../../data/instances/would-stop.js';
import { changedFields } from '../../data/forms/changed-fields.js';
import { nameOf } from '../../data/instances/instances.js';
import { noteInstance } from '../../data/instances/instance-acts.js';
import { changedLimits, fromLimits, limitFaults, type TypedLimits } from '../../data/instances/limits.js';
import type { Instance } from '../../data/api/models.js';
import { useMay } from '../../data/api/rights.js';
import { Button } from '../../parts/controls/button.js';
import { Confirm } from '../../parts/controls/dialog.js';
import { StopWords } from '../../parts/instances/instance-actions.js';
import { Money } from '../../parts/values/money.js';
import { Field, Input } from '../../parts/forms/field.js';
import { Form, FormError } from '../../parts/forms/form.js';
import { LeaveQuestion } from '../../parts/forms/leave-question.js';
import { LimitFields } from '../../parts/forms/limit-fields.js';
import { Section } from '../../parts/layout/page.js';
import { say } from '../../parts/controls/toast.js';
import styles from './page.module.css';
import { ScheduleForm } from './schedule-form.js';

type Typed = TypedLimits & { label: string };
/** What the API is sent; `expect`: how many instances it may stop at once. */
type Settings = ReturnType<typeof changedLimits> & { label?: string | null; expect: number };

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
  const [asked, setAsked] = useState<Settings>();
  const save = useMutation({
    mutationFn: (body: Settings) => api.patch('/v1/instances/{id}', { params: { path: { id } }, body }),
    onSuccess: (changed) => {
      noteInstance(queries, changed);
      setEdited({});
      setAsked(undefined);
      say('The settings are saved');
    },
    onError: (error, body) => {
      const expect = stopsIn(error);
      setAsked(expect === undefined ? undefined : { ...body, expect });
    },
  });
  const submit = () => {
    if (Object.keys(faults).length > 0) return;
    const label = typed.label.trim() === '' ? null : typed.label.trim();
    save.mutate({ ...(label !== instance.label && { label }), ...changedLimits(before, typed), expect: 0 });
  };
  const error = stopsIn(save.error) === undefined ? save.error : null;
  return (
    <>
      <Section title="Label and limits">
        <Form onSubmit={submit} error={error}>
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
      <Confirm
        isOpen={asked !== undefined}
        isBusy={save.isPending}
        title={`Save the limits and stop ${nameOf(instance)}`}
        verb="Save the limits and stop it"
        onConfirm={() => asked && save.mutate(asked)}
        onClose={() => setAsked(undefined)}
      >
        <p>
          This stops the instance now: it has cost <Money micro={instance.spend_micro} /> already.
        </p>
        <StopWords instance={instance} />
      </Confirm>
      <ScheduleForm id={id} mayChange={mayChange} />
    </>
  );
}
