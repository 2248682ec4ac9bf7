import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { useAct } from '../../data/forms/act.js';
import { api } from '../../data/api/api.js';
import { Button } from '../../parts/controls/button.js';
import { Field, Input } from '../../parts/forms/field.js';
import { isId } from './ids.js';
import { OrganizationLink } from './links.js';
import styles from './operator.module.css';
import { operatedOrganization } from './queries.js';

interface Props {
  label: string;
  hint?: string;
  /** The id of the one that is chosen. */
  chosen: string | undefined;
  onChoose: (id: string | undefined) => void;
}

/** Chooses an organization by the beginning of its name, or by its id. */
export function OrganizationChoice({ label, hint, chosen, onChoose }: Props) {
  if (chosen !== undefined) return <Chosen label={label} id={chosen} onTakeAway={() => onChoose(undefined)} />;
  return <Finder label={label} hint={hint ?? 'The beginning of its name, or its id.'} onChoose={onChoose} />;
}

function Chosen({ label, id, onTakeAway }: { label: string; id: string; onTakeAway: () => void }) {
  const { data } = useQuery(operatedOrganization(id));
  return (
    <div>
      <strong>{label}</strong>
      <p className={styles.chosen}>
        <OrganizationLink organization_id={id} organization_name={data?.name ?? null} />
        <Button onClick={onTakeAway} aria-label={`Take away: ${label}`}>
          Take away
        </Button>
      </p>
    </div>
  );
}

function Finder({ label, hint, onChoose }: { label: string; hint: string; onChoose: Props['onChoose'] }) {
  const [text, setText] = useState('');
  const finding = useAct(
    async (find: string) => {
      if (isId(find)) return [find];
      const { items } = await api.get('/v1/operator/organizations', { params: { query: { name: find, limit: 2 } } });
      const same = items.filter(({ name }) => name.toLowerCase() === find.toLowerCase());
      return (same.length === 1 ? same : items).map(({ id }) => id);
    },
    [],
    (ids) => {
      if (ids.length === 1) onChoose(ids[0]);
    },
  );
  const find = () => {
    if (text.trim() !== '') finding.mutate(text.trim());
  };
  return (
    <Field label={label} hint={hint} error={finding.error?.message ?? faultOf(finding.data)}>
      {(tied) => (
        <span className={styles.finder}>
          <Input
            {...tied}
            type="search"
            maxLength={64}
            value={text}
            onChange={({ target }) => setText(target.value)}
            onKeyDown={(event) => {
              if (event.key !== 'Enter') return;
              // It stands in forms: they are not to be sent.
              event.preventDefault();
              find();
            }}
          />
          <Button isBusy={finding.isPending} onClick={find} aria-label={`Find: ${label}`}>
            Find
          </Button>
        </span>
      )}
    </Field>
  );
}

function faultOf(ids: readonly string[] | undefined): string | undefined {
  if (ids === undefined || ids.length === 1) return undefined;
  return ids.length === 0
    ? 'No name begins with this.'
    : 'Several names begin with this: give more of the name, or the id.';
}
