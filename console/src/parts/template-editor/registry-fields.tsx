import { Field, Input, Select } from '../forms/field.js';
import type { Draft, FieldsProps } from './draft.js';
import styles from './template-form.module.css';

type Choice = Draft['registry']['choice'];
const KEEP = { value: 'keep', label: 'keep the password that is stored' } as const;
const CHOICES: readonly { value: Choice; label: string }[] = [
  { value: 'none', label: 'no password' },
  { value: 'given', label: 'this user name and password' },
];

/** The password for the registry of the image: it can be given and removed, never read. */
export function RegistryFields({
  draft: { registry },
  faults,
  change,
  hadPassword,
}: FieldsProps & { hadPassword: boolean }) {
  const set = (fields: Partial<Draft['registry']>) => change({ registry: { ...registry, ...fields } });
  return (
    <div className={styles.cells}>
      <Field
        name="registry"
        label="Password of the registry"
        hint="Nobody can read it again. It is not sent to another registry if the image changes."
        error={faults.registry}
      >
        {(tied) => (
          <Select
            {...tied}
            choices={hadPassword ? [KEEP, ...CHOICES] : CHOICES}
            value={registry.choice}
            onChoose={(choice) => set({ choice })}
          />
        )}
      </Field>
      {registry.choice === 'given' && (
        <>
          <Field name="registry.username" label="User name">
            {(tied) => (
              <Input
                {...tied}
                maxLength={256}
                value={registry.username}
                onChange={({ target }) => set({ username: target.value })}
              />
            )}
          </Field>
          <Field name="registry.password" label="Password or token">
            {(tied) => (
              <Input
                {...tied}
                type="password"
                autoComplete="new-password"
                maxLength={4_096}
                value={registry.password}
                onChange={({ target }) => set({ password: target.value })}
              />
            )}
          </Field>
        </>
      )}
    </div>
  );
}
