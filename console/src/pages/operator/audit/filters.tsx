import { getRouteApi } from '@tanstack/react-router';
import { useState } from 'react';
import { changedSearch } from '../../../data/forms/changed-search.js';
import { Button } from '../../../parts/controls/button.js';
import { Field, Input, Select } from '../../../parts/forms/field.js';
import { Form } from '../../../parts/forms/form.js';
import styles from '../operator.module.css';
import { ACTIONS, type Action } from './actions.js';
import type { AuditSearch } from './search.js';

const route = getRouteApi('/operator/audit');
const CHOICES = [
  { value: '' as const, label: 'any' },
  ...Object.keys(ACTIONS).map((value) => ({ value: value as Action, label: value })),
];

/** Chooses what the audit log shows. Give the texts of the address as its key: a new address begins anew. */
export function AuditFilters({ search }: { search: AuditSearch }) {
  const navigate = route.useNavigate();
  const [by, setBy] = useState(search.by ?? '');
  const [of, setOf] = useState(search.of ?? '');
  const go = (changed: { [Name in keyof AuditSearch]?: AuditSearch[Name] | undefined }) =>
    void navigate({ search: changedSearch(search, changed) });
  const submit = () => {
    go({ by: by.trim() || undefined, of: of.trim() || undefined });
  };
  const dayField = (label: string, name: 'from' | 'to') => (
    <Field label={label}>
      {(tied) => (
        <Input
          {...tied}
          type="date"
          value={search[name] ?? ''}
          onChange={({ target }) => go({ [name]: target.value || undefined })}
        />
      )}
    </Field>
  );
  return (
    <Form role="search" onSubmit={submit}>
      <div className={styles.filter}>
        <Field label="Action">
          {(tied) => (
            <Select
              {...tied}
              choices={CHOICES}
              value={search.action ?? ''}
              onChoose={(action) => go({ action: action || undefined })}
            />
          )}
        </Field>
        {dayField('From (UTC)', 'from')}
        {dayField('To (UTC)', 'to')}
        <Field label="Done by" hint="The whole e-mail address of an operator.">
          {(tied) => (
            <Input {...tied} type="search" maxLength={254} value={by} onChange={(e) => setBy(e.target.value)} />
          )}
        </Field>
        <Field label="Done to" hint="The id of a machine, an organization, a user or another thing.">
          {(tied) => (
            <Input {...tied} type="search" maxLength={64} value={of} onChange={(e) => setOf(e.target.value)} />
          )}
        </Field>
      </div>
      <div className={styles.after}>
        <Button type="submit">Find</Button>
      </div>
    </Form>
  );
}
