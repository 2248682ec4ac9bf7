import { getRouteApi } from '@tanstack/react-router';
import { changedSearch } from '../../data/forms/changed-search.js';
import type { Need } from '../../data/instances/instances.js';
import type { Instance } from '../../data/api/models.js';
import { WordsInput } from '../../parts/forms/address-input.js';
import { Field, Select } from '../../parts/forms/field.js';
import { countsOf } from './choice.js';
import styles from './page.module.css';
import type { InstancesSearch } from './search.js';

const route = getRouteApi('/instances');
const ALL = 'all';
const GROUPS = [
  { value: 'need', label: 'Status' },
  { value: 'label', label: 'Label' },
  { value: 'template', label: 'Template' },
] as const;

/** Which instances are shown, and how they are grouped. Each choice is a part of the address. */
export function Filters({ items }: { items: readonly Instance[] }) {
  const { need, words, by } = route.useSearch();
  const navigate = route.useNavigate();
  const set = (changed: { [Name in keyof InstancesSearch]: InstancesSearch[Name] | undefined }, replace = false) =>
    void navigate({ search: (before) => changedSearch(before, changed), replace });
  const statuses = countsOf(items).map((each) => ({ value: each.need, label: `${each.need} (${each.count})` }));
  return (
    <div className={styles.filters}>
      <Field label="Status">
        {(tied) => (
          <Select<Need | typeof ALL>
            {...tied}
            value={need ?? ALL}
            choices={[
              { value: ALL, label: `all (${items.length})` },
              ...statuses,
              ...(need === undefined || need === 'destroyed' || statuses.some(({ value }) => value === need)
                ? []
                : [{ value: need, label: `${need} (0)` }]),
              // Nobody has counted them: they are read page by page.
              { value: 'destroyed', label: 'destroyed' },
            ]}
            onChoose={(value) => set({ need: value === ALL ? undefined : value })}
          />
        )}
      </Field>
      <Field label="Label or template">
        {(tied) => (
          <WordsInput
            {...tied}
            maxLength={64}
            value={words}
            onWrite={(typed, replace) => set({ words: typed }, replace)}
          />
        )}
      </Field>
      <Field label="Grouped by">
        {(tied) => (
          <Select
            {...tied}
            value={by ?? 'need'}
            choices={GROUPS}
            onChoose={(value) => set({ by: value === 'need' ? undefined : value })}
          />
        )}
      </Field>
    </div>
  );
}
