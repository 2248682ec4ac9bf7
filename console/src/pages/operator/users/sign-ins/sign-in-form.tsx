import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { useAct } from '../../../../data/forms/act.js';
import { useDraft } from '../../../../data/forms/draft.js';
import { Button, LinkButton } from '../../../../parts/controls/button.js';
import { CopyLine } from '../../../../parts/controls/copy.js';
import { CheckBox, Field, Input } from '../../../../parts/forms/field.js';
import { Form, FormError } from '../../../../parts/forms/form.js';
import { Section } from '../../../../parts/layout/page.js';
import { Notice } from '../../../../parts/controls/states.js';
import type { Issuer } from '../../models.js';
import styles from '../../operator.module.css';
import { OPERATED } from '../../queries.js';
import { DomainFields } from './domain-fields.js';
import { draftOf, type SignInDraft } from './draft.js';

const LIST = '/operator/users/sign-ins';

interface Props {
  /** The sign-in that is changed; without it, a new one. */
  issuer?: Issuer;
  verb: string;
  /** `secret` is empty where none was typed; `before` is the form as it was. */
  save: (draft: SignInDraft, secret: string, before: SignInDraft) => Promise<unknown>;
}

/** The form of a company's sign-in. All but its secret is kept over the proof that the control plane asks for. */
export function SignInForm({ issuer, verb, save }: Props) {
  const [before] = useState(() => draftOf(issuer));
  const [draft, setDraft] = useDraft(`issuer.${issuer?.id ?? ''}`, before);
  const [secret, setSecret] = useState('');
  // It was typed before the reader had to prove who they are.
  const isLost = draft.hasSecret && secret === '';
  const secretHint = isLost
    ? 'Type it again: it is kept nowhere. To keep the one that is set, cancel.'
    : issuer?.has_client_secret
      ? 'Leave it empty to keep the one that is set.'
      : 'No page shows it again.';
  const navigate = useNavigate();
  const saving = useAct(
    () => save(draft, secret, before),
    OPERATED,
    () => void navigate({ to: LIST }),
  );
  const change = (fields: Partial<SignInDraft>) => setDraft((before) => ({ ...before, ...fields }));
  const textField = (name: 'name' | 'issuer' | 'client_id', label: string, hint: string, maxLength: number) => (
    <Field name={name} label={label} hint={hint}>
      {(tied) => (
        <Input
          {...tied}
          required
          maxLength={maxLength}
          spellCheck={false}
          value={draft[name]}
          onChange={({ target }) => change({ [name]: target.value })}
        />
      )}
    </Field>
  );
  return (
    <Form onSubmit={() => saving.mutate()} error={saving.error}>
      <Notice kind="warning">
        <p>
          Whoever runs this sign-in can sign in here as everybody with an address at its domains. Add only domains that
          belong to the company, never one of a provider of mail for everybody.
        </p>
      </Notice>
      <div className={styles.narrow}>
        {issuer === undefined && (
          <Field
            name="id"
            label="Word for the company"
            hint="Small letters, digits and hyphens, such as acme. It stays."
          >
            {(tied) => (
              <Input
                {...tied}
                required
                maxLength={32}
                pattern="[a-z0-9]([a-z0-9\-]{0,30}[a-z0-9])?"
                spellCheck={false}
                value={draft.id}
                onChange={({ target }) => change({ id: target.value })}
              />
            )}
          </Field>
        )}
        {textField('name', 'Name', 'As people see it.', 64)}
        {textField('issuer', 'Issuer', 'Its https address, as in its metadata.', 512)}
        {textField('client_id', 'Client id', 'What the issuer knows this control plane by.', 256)}
        <Field name="client_secret" label="Client secret" hint={secretHint}>
          {(tied) => (
            <Input
              {...tied}
              type="password"
              autoComplete="new-password"
              required={issuer?.has_client_secret !== true || isLost}
              maxLength={1_024}
              value={secret}
              onChange={({ target }) => {
                setSecret(target.value);
                change({ hasSecret: target.value !== '' });
              }}
            />
          )}
        </Field>
        <CheckBox
          label="The page to sign in names the company to everybody"
          checked={draft.listed}
          onChange={({ target }) => change({ listed: target.checked })}
        />
        <SessionFields draft={draft} change={change} />
      </div>
      {draft.id !== '' && <RedirectAddress id={draft.id} />}
      <Section title="Domains">
        <DomainFields domains={draft.domains} change={(domains) => change({ domains })} />
      </Section>
      <FormError />
      <div className={styles.acts}>
        <Button kind="main" type="submit" isBusy={saving.isPending}>
          {verb}
        </Button>
        <LinkButton to={LIST}>Cancel</LinkButton>
      </div>
    </Form>
  );
}

/** How long sessions of the company last, and whether they are renewed. */
function SessionFields({ draft, change }: { draft: SignInDraft; change: (fields: Partial<SignInDraft>) => void }) {
  return (
    <>
      <Field
        name="session_hours"
        label="Session length (hours)"
        hint="Up to 720, however much it is used. Empty: 30 days after the last use. API keys do not end with it."
      >
        {(tied) => (
          <Input
            {...tied}
            type="number"
            min={1}
            max={720}
            value={draft.session_hours}
            onChange={({ target }) => change({ session_hours: target.value })}
          />
        )}
      </Field>
      <CheckBox
        label="Renew sessions without a question while the company signs its people in. Anyone it refuses as unknown or disabled is signed out and leaves the organizations of the domains below."
        disabled={draft.session_hours.trim() === ''}
        checked={draft.renews_sessions}
        onChange={({ target }) => change({ renews_sessions: target.checked })}
      />
    </>
  );
}

function RedirectAddress({ id }: { id: string }) {
  return (
    <Section title="Redirect address: the company registers it at its sign-in">
      <CopyLine label="Redirect address" text={`${location.origin}/sign-in/company/${id}/return`} />
      <p className={styles.note}>
        At the address in GPURENT_PUBLIC_URL. A confidential web client, the code flow with PKCE, and the scopes openid,
        email and profile. The company must send email, and email_verified as true; Microsoft Entra sends xms_edov
        instead, for domains whose addresses you accept.
      </p>
    </Section>
  );
}
