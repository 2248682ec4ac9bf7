import { getRouteApi } from '@tanstack/react-router';
import { changedSearch } from '../../data/changed-search.js';
import { misfitOf } from '../../data/fit.js';
import type { Offer, Template } from '../../data/models.js';
import { Field, Select } from '../../parts/field.js';
import { Section } from '../../parts/page.js';
import styles from './page.module.css';

const route = getRouteApi('/deploy');
const NONE = '';

interface Props {
  template: Template | undefined;
  templates: readonly Template[];
  /** The machine that is chosen. */
  machine: Offer['machine'] | undefined;
}

/** What is to run. */
export function TemplateSection({ template, templates, machine }: Props) {
  const navigate = route.useNavigate();
  const labelOf = (each: Template) =>
    machine && misfitOf(each, machine) !== undefined ? `${each.name} (does not fit)` : each.name;
  return (
    <Section title="What runs">
      <div className={styles.fields}>
        <Field label="Template" hint={template?.description || undefined}>
          {(tied) => (
            <Select
              {...tied}
              value={template?.id ?? NONE}
              choices={[
                ...(template ? [] : [{ value: NONE, label: 'Choose a template' }]),
                ...templates.map((each) => ({ value: each.id, label: labelOf(each) })),
              ]}
              onChoose={(id) => void navigate({ search: (before) => changedSearch(before, { template: id }) })}
            />
          )}
        </Field>
      </div>
    </Section>
  );
}
