import { getRouteApi, Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { changedSearch } from '../../data/forms/changed-search.js';
import type { OfferCounts, Template } from '../../data/api/models.js';
import { choiceOf } from '../../data/instances/templates.js';
import { classNames } from '../../parts/controls/class-names.js';
import { Field, Select } from '../../parts/forms/field.js';
import { choicesOf, type Choice } from './choice.js';
import styles from './page.module.css';
import { PriceField } from './price-field.js';
import { dollarsOf, microOf, type MarketSearch, type Sort } from './search.js';

const route = getRouteApi('/market');
const ANY = '';
const SORTS: readonly { value: Sort; label: string }[] = [
  { value: 'price', label: 'Lowest price' },
  { value: 'memory', label: 'Most GPU memory' },
  { value: 'gpus', label: 'Most GPUs' },
];

interface Props {
  counts: OfferCounts;
  templates: readonly Template[];
  /** Whether there are more templates than these. */
  hasMore: boolean;
}

/** What is to run, and on what. Each choice is a part of the address. */
export function Filters({ counts, templates, hasMore }: Props) {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const set = (changed: { [Name in keyof MarketSearch]: MarketSearch[Name] | undefined }) =>
    void navigate({ search: (before) => changedSearch(before, changed) });
  return (
    <div className={styles.filters}>
      <div className={styles.selects}>
        <Field label="Template" hint={hasMore ? <MoreTemplates /> : undefined}>
          {(tied) => (
            <Select
              {...tied}
              value={search.template ?? ANY}
              choices={[{ value: ANY, label: 'Any' }, ...templates.map((each) => choiceOf(each))]}
              onChoose={(value) => set({ template: value || undefined })}
            />
          )}
        </Field>
        <Field label="GPUs">
          {(tied) => (
            <Select
              {...tied}
              value={String(search.count ?? ANY)}
              choices={[
                { value: ANY, label: 'Any number' },
                ...choicesOf(counts.num_gpus, search.count).map(withCount),
              ]}
              onChoose={(value) => set({ count: value === ANY ? undefined : Number(value) })}
            />
          )}
        </Field>
        <Field label="Region">
          {(tied) => (
            <Select
              {...tied}
              value={search.region ?? ANY}
              choices={[{ value: ANY, label: 'Any' }, ...choicesOf(counts.regions, search.region).map(withCount)]}
              onChoose={(value) => set({ region: value || undefined })}
            />
          )}
        </Field>
        <PriceField micro={microOf(search.price)} onChoose={(micro) => set({ price: dollarsOf(micro) })} />
        <Field label="Order">
          {(tied) => (
            <Select {...tied} value={search.sort ?? 'price'} choices={SORTS} onChoose={(sort) => set({ sort })} />
          )}
        </Field>
      </div>
      <fieldset className={styles.chips}>
        <legend>GPU</legend>
        {choicesOf(counts.gpu_models, search.gpu).map(({ value, offers }) => (
          <Chip
            key={value}
            isChosen={search.gpu === value}
            onPress={() => set({ gpu: search.gpu === value ? undefined : value })}
          >
            {value} <span className={styles.chipCount}>{offers}</span>
          </Chip>
        ))}
      </fieldset>
      <fieldset className={styles.chips}>
        <legend>Machine</legend>
        <Chip isChosen={search.vm === true} onPress={() => set({ vm: search.vm ? undefined : true })}>
          Runs virtual machines
        </Chip>
      </fieldset>
    </div>
  );
}

/** Where the templates are that are not among the choices. */
function MoreTemplates() {
  return (
    <>
      There are more on the <Link to="/templates">page of templates</Link>.
    </>
  );
}

/** A filter that is on or off. */
function Chip({ isChosen, onPress, children }: { isChosen: boolean; onPress: () => void; children: ReactNode }) {
  return (
    <button
      type="button"
      className={classNames(styles.chip, isChosen && styles.chosen)}
      aria-pressed={isChosen}
      onClick={onPress}
    >
      {children}
    </button>
  );
}

function withCount({ value, offers }: Choice<string | number>) {
  return { value: String(value), label: `${value} (${offers})` };
}
