import type { UseQueryResult } from '@tanstack/react-query';
import { addressForNewTab } from '../../data/api/organization.js';
import type { Offer, SshKey, Template } from '../../data/api/models.js';
import { Field, Input, Select } from '../../parts/forms/field.js';
import { LimitFields } from '../../parts/forms/limit-fields.js';
import { Section } from '../../parts/layout/page.js';
import { Loaded, Notice } from '../../parts/controls/states.js';
import { LEAST_DISK, type DeployForm, type Faults, type ShownForm } from './form.js';
import styles from './page.module.css';
import { Variables } from './variables.js';

interface FieldsProps {
  offer: Offer | undefined;
  template: Template | undefined;
  /** The keys of the reader. Before they are read nobody knows that there is none. */
  keys: UseQueryResult<SshKey[]>;
  form: ShownForm;
  faults: Faults;
  onChange: (changed: Partial<DeployForm>) => void;
}

const NONE = '';
const FREE_LATER = 'How much is free depends on the machine.';
/** The end of the slider while no machine is chosen, in GB. */
const USUAL_MOST = 1_000;

/** What else a deploy needs to know, once it is known what runs and where. */
export function Fields({ offer, template, keys, form, faults, onChange }: FieldsProps) {
  return (
    <>
      <Section title="Label and disk">
        <div className={styles.fields}>
          <Field label="Label" hint="What you call it, up to 64 characters.">
            {(tied) => (
              <Input
                {...tied}
                maxLength={64}
                value={form.label}
                onChange={(event) => onChange({ label: event.target.value })}
              />
            )}
          </Field>
        </div>
        <DiskField offer={offer} disk={form.disk} fault={faults.disk} onChange={(disk) => onChange({ disk })} />
      </Section>
      <Section title="SSH key">
        <Loaded query={keys} rows={2}>
          {(known) => (
            <KeyField
              keys={known}
              sshKey={form.sshKey}
              onChange={(sshKey) => onChange({ sshKey, isKeyChosen: true })}
            />
          )}
        </Loaded>
      </Section>
      <Variables template={template} form={form} fault={faults.added} onChange={onChange} />
      <Section title="Limits">
        <div className={styles.fields}>
          <LimitFields typed={form.limits} faults={faults.limits} onChange={(limits) => onChange({ limits })} />
        </div>
      </Section>
    </>
  );
}

interface DiskProps {
  offer: Offer | undefined;
  disk: string;
  fault: string | undefined;
  onChange: (disk: string) => void;
}

/** The size of the disk. How much is free is known of a chosen machine; the place of that stays the same without one. */
function DiskField({ offer, disk, fault, onChange }: DiskProps) {
  const free = offer?.machine.disk_available_gb;
  return (
    <div className={styles.fields}>
      <Field
        label="Size in GB"
        hint={free === undefined ? FREE_LATER : `${free} GB are free on this machine.`}
        error={fault}
      >
        {(tied) => (
          <Input {...tied} inputMode="numeric" value={disk} onChange={(event) => onChange(event.target.value)} />
        )}
      </Field>
      <input
        className={styles.slider}
        type="range"
        aria-label="Size of the disk in GB"
        min={LEAST_DISK}
        max={Math.max(LEAST_DISK, free ?? USUAL_MOST)}
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
            <a href={addressForNewTab('/keys')} target="_blank" rel="noreferrer">
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
