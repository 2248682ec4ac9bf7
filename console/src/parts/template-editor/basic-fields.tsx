import { CheckBox, Field, Input, Select, TextArea } from '../forms/field.js';
import type { FieldsProps, Owner } from './draft.js';
import styles from './template-form.module.css';

const KINDS = [
  { value: 'container', label: 'container' },
  { value: 'vm', label: 'virtual machine' },
] as const;
const VISIBILITIES = [
  { value: 'organization', label: 'only your organization' },
  { value: 'public', label: 'everybody here' },
] as const;
const MODES = [
  { value: 'ssh', label: 'SSH' },
  { value: 'jupyter', label: 'JupyterLab' },
] as const;

type RowProps = Omit<FieldsProps, 'faults'>;

/** Name, image, kind, and what runs. */
export function BasicFields({ owner, draft, faults, change }: FieldsProps & { owner: Owner }) {
  return (
    <div className={styles.columns}>
      <Field name="name" label="Name" error={faults.name}>
        {(tied) => (
          <Input
            {...tied}
            maxLength={64}
            value={draft.name}
            onChange={({ target }) => change({ name: target.value })}
          />
        )}
      </Field>
      {owner === 'organization' ? (
        <Visibility draft={draft} change={change} />
      ) : (
        <Listing draft={draft} change={change} />
      )}
      <div className={styles.wide}>
        <Field name="description" label="Purpose" hint="One line, for the list.">
          {(tied) => (
            <Input
              {...tied}
              maxLength={1_000}
              value={draft.description}
              onChange={({ target }) => change({ description: target.value })}
            />
          )}
        </Field>
      </div>
      <div className={styles.wide}>
        <Field
          name="image"
          label="Image"
          hint={draft.kind === 'vm' ? 'An image that contains a disk.' : 'For example docker.io/library/debian:12'}
          error={faults.image}
        >
          {(tied) => (
            <Input
              {...tied}
              maxLength={512}
              spellCheck={false}
              value={draft.image}
              onChange={({ target }) => change({ image: target.value })}
            />
          )}
        </Field>
      </div>
      <Field name="kind" label="Kind">
        {(tied) => <Select {...tied} choices={KINDS} value={draft.kind} onChoose={(kind) => change({ kind })} />}
      </Field>
      <Field name="ssh_user" label="User" hint="Whom SSH logs in as.">
        {(tied) => (
          <Input {...tied} value={draft.ssh_user} onChange={({ target }) => change({ ssh_user: target.value })} />
        )}
      </Field>
      <Field name="cuda_min" label="Minimum CUDA version" hint="Hides machines with an older one. Empty: any.">
        {(tied) => (
          <Input
            {...tied}
            placeholder="12.1"
            value={draft.cuda_min}
            onChange={({ target }) => change({ cuda_min: target.value })}
          />
        )}
      </Field>
      <Field name="cuda_max" label="Newest CUDA version" hint="Machines with a newer one are left out. Empty: any.">
        {(tied) => (
          <Input
            {...tied}
            placeholder="12.4"
            value={draft.cuda_max}
            onChange={({ target }) => change({ cuda_max: target.value })}
          />
        )}
      </Field>
      <Modes draft={draft} change={change} />
      <Scripts draft={draft} change={change} />
    </div>
  );
}

function Visibility({ draft, change }: RowProps) {
  return (
    <Field name="visibility" label="Who sees it">
      {(tied) => (
        <Select
          {...tied}
          choices={VISIBILITIES}
          value={draft.visibility}
          onChoose={(visibility) => change({ visibility })}
        />
      )}
    </Field>
  );
}

/** How renters find a system template. */
function Listing({ draft, change }: RowProps) {
  return (
    <fieldset>
      <legend>For all renters</legend>
      <div className={styles.checks}>
        <CheckBox
          label="recommended"
          checked={draft.recommended}
          onChange={({ target }) => change({ recommended: target.checked })}
        />
        <CheckBox
          label="coming soon: it cannot be deployed yet"
          checked={draft.coming_soon}
          onChange={({ target }) => change({ coming_soon: target.checked })}
        />
      </div>
    </fieldset>
  );
}

function Modes({ draft, change }: RowProps) {
  return (
    <fieldset className={styles.wide}>
      <legend>Runs beside the command</legend>
      <div className={styles.checks}>
        {MODES.map(({ value, label }) => (
          <CheckBox
            key={value}
            label={label}
            checked={draft.mode.includes(value)}
            onChange={({ target }) =>
              change({ mode: [...draft.mode.filter((mode) => mode !== value), ...(target.checked ? [value] : [])] })
            }
          />
        ))}
      </div>
    </fieldset>
  );
}

function Scripts({ draft, change }: RowProps) {
  return (
    <>
      <div className={styles.wide}>
        <Field
          name="command"
          label="Command"
          hint="One argument a line, without quotes. Empty: the command of the image."
        >
          {(tied) => (
            <TextArea
              {...tied}
              rows={3}
              spellCheck={false}
              value={draft.command}
              onChange={({ target }) => change({ command: target.value })}
            />
          )}
        </Field>
      </div>
      <div className={styles.wide}>
        <Field name="onstart" label="At each start" hint="A shell script that runs before the command.">
          {(tied) => (
            <TextArea
              {...tied}
              rows={3}
              maxLength={30_000}
              spellCheck={false}
              value={draft.onstart}
              onChange={({ target }) => change({ onstart: target.value })}
            />
          )}
        </Field>
      </div>
    </>
  );
}
