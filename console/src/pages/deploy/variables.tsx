import type { Template } from '../../data/models.js';
import { Button } from '../../parts/button.js';
import { CheckBox, Field, Input } from '../../parts/field.js';
import { Section } from '../../parts/page.js';
import { overrideOf, withOverride, type DeployForm, type Variable } from './form.js';
import styles from './page.module.css';

interface VariablesProps {
  template: Template | undefined;
  form: DeployForm;
  fault: string | undefined;
  onChange: (changed: Partial<DeployForm>) => void;
}

const MOST = 100;

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
          {env.map(({ key, value, secret }) => (
            <Field key={key} label={<code>{key}</code>}>
              {(tied) => (
                <Input
                  {...tied}
                  {...(secret ? { type: 'password', autoComplete: 'new-password' } : {})}
                  maxLength={4_096}
                  placeholder={secret ? 'the template has a secret value' : (value ?? '')}
                  value={overrideOf(form, template, key)}
                  onChange={(event) => onChange(withOverride(form, template, key, event.target.value))}
                />
              )}
            </Field>
          ))}
        </div>
      )}
      {added.map((variable) => (
        <fieldset key={variable.row} className={styles.variable}>
          <Field label="Name">
            {(tied) => (
              <Input
                {...tied}
                maxLength={256}
                value={variable.key}
                onChange={(event) => change(variable.row, { key: event.target.value })}
              />
            )}
          </Field>
          <Field label="Value">
            {(tied) => (
              <Input
                {...tied}
                {...(variable.secret ? { type: 'password', autoComplete: 'new-password' } : {})}
                maxLength={4_096}
                value={variable.value}
                onChange={(event) => change(variable.row, { value: event.target.value })}
              />
            )}
          </Field>
          <CheckBox
            label="Secret"
            checked={variable.secret}
            onChange={(event) => change(variable.row, { secret: event.target.checked })}
          />
          <Button onClick={() => onChange({ added: added.filter(({ row }) => row !== variable.row) })}>Remove</Button>
        </fieldset>
      ))}
      {fault !== undefined && <p className={styles.fault}>{fault}</p>}
      {added.length + env.length < MOST && <Button onClick={add}>Add a variable</Button>}
    </Section>
  );
}
