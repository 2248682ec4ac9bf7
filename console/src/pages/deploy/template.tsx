import { getRouteApi, Link } from '@tanstack/react-router';
import { changedSearch } from '../../data/forms/changed-search.js';
import { misfitOf } from '../../data/instances/fit.js';
import type { Offer, Template } from '../../data/api/models.js';
import { choiceOf, isOfStranger, makerOf } from '../../data/instances/templates.js';
import { Field, Select } from '../../parts/forms/field.js';
import { Section } from '../../parts/layout/page.js';
import styles from './page.module.css';

const route = getRouteApi('/deploy');
const NONE = '';

interface Props {
  template: Template | undefined;
  templates: readonly Template[];
  /** Whether there are more than these. */
  hasMore: boolean;
  /** The machine that is chosen. */
  machine: Offer['machine'] | undefined;
}

/** What is to run. */
export function TemplateSection({ template, templates, hasMore, machine }: Props) {
  const navigate = route.useNavigate();
  const notesOn = (each: Template) => (machine && misfitOf(each, machine) !== undefined ? ['does not fit'] : []);
  return (
    <Section title="What runs">
      <div className={styles.wide}>
        <Field label="Template" hint={template?.description || undefined}>
          {(tied) => (
            <Select
              {...tied}
              value={template?.id ?? NONE}
              choices={[
                ...(template ? [] : [{ value: NONE, label: 'Choose a template' }]),
                ...templates.map((each) => choiceOf(each, ...notesOn(each))),
              ]}
              onChoose={(id) => void navigate({ search: (before) => changedSearch(before, { template: id }) })}
            />
          )}
        </Field>
      </div>
      {template && <Maker template={template} />}
      {hasMore && (
        <p className={styles.maker}>
          There are more on the <Link to="/templates">page of templates</Link>.
        </p>
      )}
    </Section>
  );
}

/** Who has made what runs, and what that is: its name and its description say what its maker likes. */
function Maker({ template }: { template: Template }) {
  return (
    <p className={styles.maker}>
      It is {makerOf(template)}, and runs the image <code>{template.image}</code>.
      {isOfStranger(template) && ' The operator has not checked it.'}
    </p>
  );
}
