import { useBlocker, type LinkProps } from '@tanstack/react-router';
import { useRef, useState, type SyntheticEvent } from 'react';
import { useAct } from '../../data/act.js';
import { ApiError } from '../../data/api.js';
import type { Template } from '../../data/models.js';
import { Button, LinkButton } from '../button.js';
import { Confirm } from '../dialog.js';
import { useFirstFault } from '../first-fault.js';
import { Section } from '../page.js';
import { ErrorBox } from '../states.js';
import { BasicFields } from './basic-fields.js';
import { contentOf, draftOf, faultsOf, type Draft, type Faults, type Owner, type TemplateContent } from './draft.js';
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
  const [tries, setTries] = useState(0);
  const isTried = tries > 0;
  const isSaved = useRef(false);
  const saving = useAct(
    () => save(contentOf(draft, template), draft),
    OLD,
    (saved) => {
      isSaved.current = true;
      onSaved(saved);
    },
  );
  const form = useFirstFault(tries, saving.error);
  const faults = { ...(isTried ? faultsOf(draft) : {}), ...faultsIn(saving.error) };
  const change = (fields: Partial<Draft>) => setDraft((before) => ({ ...before, ...fields }));
  const submit = (event: SyntheticEvent) => {
    event.preventDefault();
    setTries(tries + 1);
    if (Object.keys(faultsOf(draft)).length > 0) return;
    saving.mutate();
  };
  const fields = { draft, faults, change };
  return (
    <form ref={form} className={styles.form} onSubmit={submit} noValidate>
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
        <ReadmeField {...fields} />
      </Section>
      {isTried && Object.keys(faultsOf(draft)).length > 0 && (
        <p className={styles.wrong} role="alert">
          Something above is missing or wrong: the field says what.
        </p>
      )}
      {saving.error && <ErrorBox error={saving.error} />}
      <div className={styles.actions}>
        <Button kind="main" type="submit" isBusy={saving.isPending}>
          {verb}
        </Button>
        <LinkButton {...back}>Cancel</LinkButton>
      </div>
      <LeaveQuestion isDirty={() => draft !== first && !isSaved.current} />
    </form>
  );
}

function LeaveQuestion({ isDirty }: { isDirty: () => boolean }) {
  const blocker = useBlocker({ shouldBlockFn: isDirty, enableBeforeUnload: isDirty, withResolver: true });
  return (
    <Confirm
      title="Leave without saving the template"
      verb="Leave"
      isOpen={blocker.status === 'blocked'}
      onConfirm={() => blocker.proceed?.()}
      onClose={() => blocker.reset?.()}
    >
      <p>What you have changed here is lost then.</p>
    </Confirm>
  );
}

/** Returns the fields that the control plane has refused, with its words. */
function faultsIn(error: unknown): Faults {
  if (!(error instanceof ApiError) || !error.is('VALIDATION_FAILED')) return {};
  return Object.fromEntries(
    error.body.details.map(({ path, message }) => [path.split(/[./[]/).find((part) => part !== '') ?? '', message]),
  );
}
