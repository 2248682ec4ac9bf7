import { Button } from '../../../../parts/controls/button.js';
import { CheckBox, Field, Input, Select } from '../../../../parts/forms/field.js';
import styles from '../../operator.module.css';
import { OrganizationChoice } from '../../organization-choice.js';
import { isSent, NEW_DOMAIN, type DomainDraft } from './draft.js';

const MOST = 100;
const ROLES = (['member', 'viewer', 'billing'] as const).map((value) => ({ value, label: value }));

interface Props {
  domains: readonly DomainDraft[];
  change: (domains: DomainDraft[]) => void;
}

/** The domains for whose addresses a company's sign-in speaks, and what their people become. */
export function DomainFields({ domains, change }: Props) {
  const sent = domains.filter(isSent);
  const set = (index: number, fields: Partial<DomainDraft>) =>
    change(domains.map((line, at) => (at === index ? { ...line, ...fields } : line)));
  return (
    <>
      <ul className={styles.list}>
        {domains.map((line, index) => (
          <li key={index} className={styles.group}>
            <DomainLine name={`domains.${sent.indexOf(line)}`} line={line} set={(fields) => set(index, fields)} />
            <div className={styles.acts}>
              <Button onClick={() => change(domains.filter((_, at) => at !== index))}>
                Remove {line.domain === '' ? 'this domain' : line.domain}
              </Button>
            </div>
          </li>
        ))}
      </ul>
      <Button disabled={domains.length >= MOST} onClick={() => change([...domains, NEW_DOMAIN])}>
        Add a domain
      </Button>
    </>
  );
}

interface LineProps {
  name: string;
  line: DomainDraft;
  set: (fields: Partial<DomainDraft>) => void;
}

function DomainLine({ name, line, set }: LineProps) {
  return (
    <>
      <div className={styles.filter}>
        <Field name={name} label="Domain" hint="Such as acme.example. Domains below it do not count.">
          {(tied) => (
            <Input
              {...tied}
              maxLength={253}
              spellCheck={false}
              value={line.domain}
              onChange={({ target }) => set({ domain: target.value })}
            />
          )}
        </Field>
        <OrganizationChoice
          label="Organization that new accounts join"
          hint="The beginning of its name, or its id. None: each account gets its own."
          chosen={line.organization_id ?? undefined}
          onChoose={(id) => set({ organization_id: id ?? null })}
        />
        <Field label="As">
          {(tied) => <Select {...tied} choices={ROLES} value={line.role} onChoose={(role) => set({ role })} />}
        </Field>
      </div>
      <CheckBox
        label="Passwords are off for its users: link the accounts first. Operators are excepted."
        checked={line.passwords_off}
        onChange={({ target }) => set({ passwords_off: target.checked })}
      />
      <CheckBox
        label="Accept addresses that the issuer does not confirm, as with Microsoft Entra. Only if the company alone runs the issuer."
        checked={line.accept_unverified}
        onChange={({ target }) => set({ accept_unverified: target.checked })}
      />
    </>
  );
}
