import type { LinkProps } from '@tanstack/react-router';
import { useRef, useState } from 'react';
import { useAct } from '../../data/forms/act.js';
import type { Template } from '../../data/api/models.js';
import { Button, LinkButton } from '../controls/button.js';
import { Form, FormError } from '../forms/form.js';
import { LeaveQuestion } from '../forms/leave-question.js';
import { Section } from '../layout/page.js';
import { BasicFields } from './basic-fields.js';
import { contentOf, draftOf, faultsOf, type Draft, type Owner, type TemplateContent } from './draft.js';
import { EnvironmentFields } from './environment-fields.js';
import { PortFields } from './port-fields.js';
import { ReadmeField } from './readme-field.js';
import { RegistryFields } from './registry-fields.js';
import styles from './template-form.module.css';

interface FormProps {
  /** The template that is changed; without it, a new one. */
  template?: Template;
  owner: Owner;
  verb: string;
  /** Sends the content, and of the draft what only templates of this owner have. */
  save: (content: TemplateContent, draft: Draft) => Promise<Template>;
  onSaved: (template: Template) => void;
  /** Where one goes who saves nothing. */
  back: Pick<LinkProps, 'to' | 'params'>;
}

/** What a saved template makes old. */
const OLD = [['templates'], ['operator', 'templates']];

/** The form of a template. Nothing that was typed is lost: not by a refusal, and not by leaving the page without a question. */
export function TemplateForm({ template, owner, verb, save, onSaved, back }: FormProps) {
  const [first] = useState(() => draftOf(template));
  const [draft, setDraft] = useState(first);
  const [isTried, setTried] = useState(false);
  const isSaved = useRef(false);
  const saving = useAct(
    () => save(contentOf(draft, template), draft),
    OLD,
    (saved) => {
      isSaved.current = true;
      onSaved(saved);
    },
  );
  const faults = isTried ? faultsOf(draft) : {};
  const change = (fields: Partial<Draft>) => setDraft((before) => ({ ...before, ...fields }));
  const submit = () => {
    setTried(true);
    if (Object.keys(faultsOf(draft)).length === 0) saving.mutate();
  };
  const fields = { draft, faults, change };
  return (
    <Form className={styles.form} onSubmit={submit} error={saving.error} noValidate>
      <BasicFields {...fields} owner={owner} />
      <Section title="Ports">
        <PortFields {...fields} />
      </Section>
      <Section title="Environment">
        <EnvironmentFields {...fields} />
      </Section>
      <Section title="Registry">
        <RegistryFields {...fields} hadPassword={template?.registry_private === true} />
      </Section>
      <Section title="Readme">
        <ReadmeField draft={draft} change={change} />
      </Section>
      {Object.keys(faults).length > 0 && (
        <p className={styles.wrong} role="alert">
          Something above is missing or wrong: the field says what.
        </p>
      )}
      <FormError />
      <div className={styles.actions}>
        <Button kind="main" type="submit" isBusy={saving.isPending}>
          {verb}
        </Button>
        <LinkButton {...back}>Cancel</LinkButton>
      </div>
      <LeaveQuestion what="template" isDirty={() => draft !== first && !isSaved.current} />
    </Form>
  );
}
