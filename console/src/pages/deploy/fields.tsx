import { getRouteApi } from '@tanstack/react-router';
import { misfitOf } from '../../data/fit.js';
import type { Offer, SshKey, Template } from '../../data/models.js';
import { Field, Input, Select } from '../../parts/field.js';
import { LimitFields } from '../../parts/limit-fields.js';
import { Section } from '../../parts/page.js';
import { Notice } from '../../parts/states.js';
import { LEAST_DISK, type DeployForm, type Faults } from './form.js';
import styles from './page.module.css';
import { Variables } from './variables.js';

interface FieldsProps {
  offer: Offer;
  template: Template | undefined;
  templates: readonly Template[];
  keys: readonly SshKey[];
  form: DeployForm;
  faults: Faults;
  onChange: (form: DeployForm) => void;
}

const route = getRouteApi('/deploy');
const NONE = '';

/** What a deploy needs to know, the template first. */
export function Fields({ offer, template, templates, keys, form, faults, onChange }: FieldsProps) {
  const navigate = route.useNavigate();
  const set = (changed: Partial<DeployForm>) => onChange({ ...form, ...changed });
  const misfit = (each: Template) => misfitOf(each, offer.machine);
  return (
    <>
      <Section title="What runs">
        <div className={styles.fields}>
          <Field label="Template" hint={template?.description || undefined}>
            {(tied) => (
              <Select
                {...tied}
                value={template?.id ?? NONE}
                choices={[
                  ...(template ? [] : [{ value: NONE, label: 'Choose a template' }]),
                  ...templates.map((each) => ({
                    value: each.id,
                    label: misfit(each) === undefined ? each.name : `${each.name} (does not fit)`,
                  })),
                ]}
                onChoose={(id) => void navigate({ search: { offer: offer.id, template: id }, replace: true })}
              />
            )}
          </Field>
          <Field label="Label" hint="What you call it, up to 64 characters.">
            {(tied) => (
              <Input
                {...tied}
                maxLength={64}
                value={form.label}
                onChange={(event) => set({ label: event.target.value })}
              />
            )}
          </Field>
        </div>
      </Section>
      <Section title="Disk">
        <DiskField offer={offer} disk={form.disk} fault={faults.disk} onChange={(disk) => set({ disk })} />
      </Section>
      <Section title="SSH key">
        <KeyField keys={keys} sshKey={form.sshKey} onChange={(sshKey) => set({ sshKey, isKeyChosen: true })} />
      </Section>
      <Variables template={template} form={form} fault={faults.added} onChange={set} />
      <Section title="Limits">
        <div className={styles.fields}>
          <LimitFields typed={form.limits} faults={faults.limits} onChange={(limits) => set({ limits })} />
        </div>
      </Section>
    </>
  );
}

function DiskField(props: { offer: Offer; disk: string; fault: string | undefined; onChange: (disk: string) => void }) {
  const { offer, disk, fault, onChange } = props;
  const most = Math.max(LEAST_DISK, offer.machine.disk_available_gb);
  return (
    <div className={styles.fields}>
      <Field label="Size in GB" hint={`${offer.machine.disk_available_gb} GB are free on this machine.`} error={fault}>
        {(tied) => (
          <Input {...tied} inputMode="numeric" value={disk} onChange={(event) => onChange(event.target.value)} />
        )}
      </Field>
      <input
        className={styles.slider}
        type="range"
        aria-label="Size of the disk in GB"
        min={LEAST_DISK}
        max={most}
        value={Number(disk) || LEAST_DISK}
        onChange={(event) => onChange(event.target.value)}
      />
    </div>
  );
}

function KeyField({
  keys,
  sshKey,
  onChange,
}: {
  keys: readonly SshKey[];
  sshKey: string;
  onChange: (id: string) => void;
}) {
  const choices = [
    ...keys.map(({ id, name, fingerprint }) => ({ value: id, label: `${name} (${fingerprint.slice(0, 19)}…)` })),
    { value: NONE, label: 'None: nobody can log in by SSH' },
  ];
  return (
    <>
      {sshKey === NONE && (
        <Notice kind="warning">
          <p>
            Without a key nobody can log in by SSH, also later. {/* In another window: what was typed here stays. */}
            <a href="/keys" target="_blank" rel="noreferrer">
              Add an SSH key
            </a>
          </p>
        </Notice>
      )}
      <div className={styles.wide}>
        <Field label="Key that may log in">
          {(tied) => <Select {...tied} choices={choices} value={sshKey} onChoose={onChange} />}
        </Field>
      </div>
    </>
  );
}
