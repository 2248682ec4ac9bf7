import { useQuery } from '@tanstack/react-query';
import { useId, useState } from 'react';
import { useDraft } from '../../data/forms/draft.js';
import { nameOf } from '../../data/instances/instances.js';
import type { WebhookRequest } from '../../data/api/models.js';
import { instances } from '../../data/api/queries.js';
import { Button } from '../../parts/controls/button.js';
import { DialogActions } from '../../parts/controls/dialog.js';
import { CheckBox, Field, Input, Select } from '../../parts/forms/field.js';
import { Form, FormError } from '../../parts/forms/form.js';
import { GROUPS, type EventType } from './event-types.js';
import styles from './page.module.css';

/** What an endpoint is: where it is, and which events it gets. */
export type Given = Required<Omit<WebhookRequest, 'types'>> & { types: EventType[] | null };

interface Props {
  /** Under which name what was typed is kept while the reader proves who they are. */
  draft: string;
  before: Given;
  verb: string;
  isBusy: boolean;
  error: unknown;
  onSubmit: (given: Given) => void;
  onClose: () => void;
}

/** The fields of an endpoint. What was typed stays if it is refused. */
export function EndpointForm({ draft, before, verb, isBusy, error, onSubmit, onClose }: Props) {
  const [given, setGiven] = useDraft(draft, before);
  const set = (changed: Partial<Given>) => setGiven((old) => ({ ...old, ...changed }));
  const [isEmpty, setEmpty] = useState(false);
  const submit = () => {
    setEmpty(given.types?.length === 0);
    if (given.types?.length !== 0) onSubmit({ ...given, url: given.url.trim() });
  };
  return (
    <Form className={styles.form} onSubmit={submit} error={error}>
      <Field name="url" label="Address" hint="An https address that is reached over the Internet.">
        {(tied) => (
          <Input
            {...tied}
            type="url"
            required
            value={given.url}
            onChange={({ target }) => set({ url: target.value })}
          />
        )}
      </Field>
      <Field name="description" label="What it is for" hint="Optional.">
        {(tied) => (
          <Input
            {...tied}
            maxLength={200}
            value={given.description ?? ''}
            onChange={({ target }) => set({ description: target.value === '' ? null : target.value })}
          />
        )}
      </Field>
      <Of value={given.instance_id} onChoose={(instance_id) => set({ instance_id })} />
      <Types types={given.types} onChoose={(types) => set({ types })} isEmpty={isEmpty} />
      <FormError />
      <DialogActions>
        <Button onClick={onClose}>Cancel</Button>
        <Button kind="main" type="submit" isBusy={isBusy}>
          {verb}
        </Button>
      </DialogActions>
    </Form>
  );
}

function Of({ value, onChoose }: { value: string | null; onChoose: (id: string | null) => void }) {
  const { data = [] } = useQuery(instances);
  const live = data.filter(({ id, status }) => status !== 'destroyed' || id === value);
  const choices = live.map((each) => ({ value: each.id, label: `the instance ${nameOf(each)}` }));
  // One that was destroyed long ago is not in the list.
  if (value !== null && !live.some(({ id }) => id === value)) choices.push({ value, label: `the instance ${value}` });
  return (
    <Field name="instance_id" label="Events of">
      {(tied) => (
        <Select
          {...tied}
          choices={[{ value: '', label: 'the whole organization' }, ...choices]}
          value={value ?? ''}
          onChoose={(id) => onChoose(id === '' ? null : id)}
        />
      )}
    </Field>
  );
}

interface TypesProps {
  types: EventType[] | null;
  onChoose: (types: EventType[] | null) => void;
  isEmpty: boolean;
}

function Types({ types, onChoose, isEmpty }: TypesProps) {
  const toggle = (type: EventType, isWanted: boolean) =>
    onChoose(isWanted ? [...(types ?? []), type] : (types ?? []).filter((each) => each !== type));
  const id = useId();
  const isWrong = isEmpty && types?.length === 0;
  return (
    <fieldset>
      <legend>Types of events</legend>
      <CheckBox
        label="All, also those that later releases add"
        {...(isWrong && { 'aria-invalid': true, 'aria-describedby': id })}
        checked={types === null}
        onChange={({ target }) => onChoose(target.checked ? null : [])}
      />
      {types !== null &&
        GROUPS.map((group) => (
          <div key={group.about} className={styles.group}>
            {group.types.map((type) => (
              <CheckBox
                key={type}
                label={type}
                checked={types.includes(type)}
                onChange={({ target }) => toggle(type, target.checked)}
              />
            ))}
          </div>
        ))}
      {isWrong && (
        <p id={id} className={styles.wrong} role="alert">
          Choose at least one type, or all.
        </p>
      )}
    </fieldset>
  );
}
