import type { Template } from '../../data/api/models.js';
import { Button } from '../../parts/controls/button.js';
import { CheckBox, Field, Input } from '../../parts/forms/field.js';
import { Section } from '../../parts/layout/page.js';
import { overrideFault, overrideOf, valueFault, withOverride, type DeployForm, type Variable } from './form.js';
import styles from './page.module.css';

interface VariablesProps {
  template: Template | undefined;
  form: DeployForm;
  fault: string | undefined;
  onChange: (changed: Partial<DeployForm>) => void;
}

const MOST = 100;
/** How the field of a secret is. */
const HIDDEN = { type: 'password', autoComplete: 'new-password' } as const;

/** The environment: the variables of the template, whose values can be replaced, and others. */
export function Variables({ template, form, fault, onChange }: VariablesProps) {
  const { added } = form;
  const env = template?.env ?? [];
  const change = (row: number, changed: Partial<Variable>) =>
    onChange({ added: added.map((each) => (each.row === row ? { ...each, ...changed } : each)) });
  const add = () => {
    const row = Math.max(0, ...added.map((each) => each.row)) + 1;
    onChange({ added: [...added, { row, key: '', value: '', secret: false }] });
  };
  return (
    <Section title="Environment">
      {template && env.length > 0 && (
        <div className={styles.fields}>
          {env.map((variable) => (
            <Override
              key={variable.key}
              variable={variable}
              value={overrideOf(form, template, variable.key)}
              fault={overrideFault(form, template, variable.key)}
              onChange={(value) => onChange(withOverride(form, template, variable.key, value))}
            />
          ))}
        </div>
      )}
      {added.map((variable) => (
        <Added
          key={variable.row}
          variable={variable}
          onChange={(changed) => change(variable.row, changed)}
          onRemove={() => onChange({ added: added.filter(({ row }) => row !== variable.row) })}
        />
      ))}
      {fault !== undefined && <p className={styles.fault}>{fault}</p>}
      {added.length + env.length < MOST && <Button onClick={add}>Add a variable</Button>}
    </Section>
  );
}

interface OverrideProps {
  variable: Template['env'][number];
  /** Empty: that of the template. */
  value: string;
  fault: string | undefined;
  onChange: (value: string) => void;
}

/** A variable of the template. */
function Override({ variable: { key, value: own, secret }, value, fault, onChange }: OverrideProps) {
  return (
    <Field label={<code>{key}</code>} error={fault}>
      {(tied) => (
        <>
          <Input
            {...tied}
            {...(secret ? HIDDEN : {})}
            maxLength={4_096}
            placeholder={secret ? 'the template has a secret value' : (own ?? '')}
            value={value}
            onChange={({ target }) => onChange(target.value)}
          />
          {fault !== undefined && (
            <Button
              onClick={() => {
                onChange('');
                // The button goes away.
                document.getElementById(tied.id)?.focus();
              }}
            >
              Use the value of the template
            </Button>
          )}
        </>
      )}
    </Field>
  );
}

interface AddedProps {
  variable: Variable;
  onChange: (changed: Partial<Variable>) => void;
  onRemove: () => void;
}

/** A variable beside those of the template. */
function Added({ variable, onChange, onRemove }: AddedProps) {
  const { key, value, secret } = variable;
  return (
    <fieldset className={styles.variable}>
      <Field label="Name">
        {(tied) => (
          <Input {...tied} maxLength={256} value={key} onChange={({ target }) => onChange({ key: target.value })} />
        )}
      </Field>
      <Field label="Value" error={valueFault(variable)}>
        {(tied) => (
          <Input
            {...tied}
            {...(secret ? HIDDEN : {})}
            maxLength={4_096}
            value={value}
            onChange={({ target }) => onChange({ value: target.value, isForgotten: false })}
          />
        )}
      </Field>
      <CheckBox label="Secret" checked={secret} onChange={({ target }) => onChange({ secret: target.checked })} />
      <Button onClick={onRemove}>Remove</Button>
    </fieldset>
  );
}
