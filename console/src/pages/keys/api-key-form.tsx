import { useState } from 'react';
import { useAct } from '../../data/forms/act.js';
import { api } from '../../data/api/api.js';
import { serverNow } from '../../data/api/clock.js';
import { useDraft } from '../../data/forms/draft.js';
import { Button } from '../../parts/controls/button.js';
import { DialogActions } from '../../parts/controls/dialog.js';
import { CheckBox, Field, Input, Select, TextArea } from '../../parts/forms/field.js';
import { Form, FormError } from '../../parts/forms/form.js';
import { CapFields } from '../../parts/forms/spend-caps.js';
import { keyBodyOf, keyFaultsOf, NEW_KEY, type KeyDraft } from './key-draft.js';
import styles from './page.module.css';
import type { MadeKey } from './queries.js';

const KINDS = [
  { value: 'personal', label: 'mine: it ends when I leave the organization' },
  { value: 'team', label: 'of the team: it stays' },
] as const;
const ENDS = [
  { value: '', label: 'never' },
  { value: '1', label: 'in a day' },
  { value: '7', label: 'in 7 days' },
  { value: '30', label: 'in 30 days' },
  { value: '90', label: 'in 90 days' },
  { value: '365', label: 'in a year' },
] as const;

interface FormProps {
  mayMakeTeamKeys: boolean;
  onMade: (made: MadeKey) => void;
  close: () => void;
}

/** The form of a new API key: its restrictions cannot be changed later, except for its caps. */
export function ApiKeyForm({ mayMakeTeamKeys, onMade, close }: FormProps) {
  const [draft, setDraft] = useDraft('api-key', NEW_KEY);
  const [isTried, setTried] = useState(false);
  const faults = keyFaultsOf(draft);
  const creating = useAct(
    // The page has its secret, shown only once, before anything is read again.
    async () => onMade(await api.post('/v1/api-keys', { body: keyBodyOf(draft, serverNow()) })),
    [['api-keys']],
  );
  const change = (fields: Partial<KeyDraft>) => setDraft((before) => ({ ...before, ...fields }));
  const submit = () => {
    setTried(true);
    if (Object.keys(faults).length === 0) creating.mutate();
  };
  return (
    <Form className={styles.form} onSubmit={submit} error={creating.error} noValidate>
      <Field
        name="name"
        label="Name"
        hint="What will use it, for example: CI"
        error={isTried ? faults.name : undefined}
      >
        {(tied) => (
          <Input
            {...tied}
            maxLength={64}
            value={draft.name}
            onChange={({ target }) => change({ name: target.value })}
          />
        )}
      </Field>
      {mayMakeTeamKeys && (
        <Field name="kind" label="Whose">
          {(tied) => <Select {...tied} choices={KINDS} value={draft.kind} onChoose={(kind) => change({ kind })} />}
        </Field>
      )}
      <CheckBox
        label="it may only read"
        checked={draft.isReadOnly}
        onChange={({ target }) => change({ isReadOnly: target.checked })}
      />
      <Field
        name="allowed_addresses"
        label="Addresses from which it works"
        hint="One a line, such as 192.0.2.1 or 2001:db8::/32. Empty: from everywhere."
      >
        {(tied) => (
          <TextArea
            {...tied}
            rows={2}
            spellCheck={false}
            value={draft.addresses}
            onChange={({ target }) => change({ addresses: target.value })}
          />
        )}
      </Field>
      <Field name="expires_at" label="It ends">
        {(tied) => <Select {...tied} choices={ENDS} value={draft.days} onChoose={(days) => change({ days })} />}
      </Field>
      <fieldset className={styles.group}>
        <legend>What it may spend</legend>
        <CapFields path="spend_caps." texts={draft.caps} change={(caps) => change({ caps })} />
      </fieldset>
      <FormError />
      <DialogActions>
        <Button onClick={close}>Cancel</Button>
        <Button kind="main" type="submit" isBusy={creating.isPending}>
          Create the key
        </Button>
      </DialogActions>
    </Form>
  );
}
