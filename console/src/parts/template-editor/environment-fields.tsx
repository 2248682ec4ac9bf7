import { useState } from 'react';
import { Button } from '../controls/button.js';
import { classNames } from '../controls/class-names.js';
import { CheckBox, Field, Input, TextArea } from '../forms/field.js';
import { isSent, newVariable, type FieldsProps, type VariableRow } from './draft.js';
import styles from './template-form.module.css';

const MOST = 100;

/** The environment. Secret values are masked, and those that the control plane keeps are never shown. */
export function EnvironmentFields({ draft: { env }, faults, change }: FieldsProps) {
  const set = (row: VariableRow) => change({ env: env.map((each) => (each.rowKey === row.rowKey ? row : each)) });
  const sent = env.filter(isSent);
  return (
    <>
      <p className={styles.hint}>No answer of the API contains a secret value. A public template has none.</p>
      <ul className={styles.rows}>
        {env.map((row) => (
          <li key={row.rowKey} className={styles.row}>
            <Variable
              name={`env.${sent.indexOf(row)}`}
              row={row}
              fault={faults[`env.${row.rowKey}`]}
              set={set}
              remove={() => change({ env: env.filter(({ rowKey }) => rowKey !== row.rowKey) })}
            />
          </li>
        ))}
      </ul>
      <Button disabled={env.length >= MOST} onClick={() => change({ env: [...env, newVariable()] })}>
        Add a variable
      </Button>
    </>
  );
}

interface VariableProps {
  name: string;
  row: VariableRow;
  fault: string | undefined;
  set: (row: VariableRow) => void;
  remove: () => void;
}

function Variable({ name, row, fault, set, remove }: VariableProps) {
  const [isShown, setShown] = useState(false);
  return (
    <>
      <div className={styles.cells}>
        <Field name={name} label="Variable" error={fault}>
          {(tied) => (
            <Input
              {...tied}
              maxLength={256}
              spellCheck={false}
              value={row.key}
              onChange={({ target }) => set({ ...row, key: target.value })}
            />
          )}
        </Field>
        <Field
          name={`${name}.value`}
          label="Value"
          hint={row.isKept ? 'A secret is kept. Empty: it stays as it is.' : undefined}
        >
          {(tied) => (
            <TextArea
              {...tied}
              className={classNames(row.secret && !isShown && styles.masked)}
              rows={1}
              maxLength={4_096}
              spellCheck={false}
              autoComplete="off"
              placeholder={row.isKept ? '••••••••' : ''}
              value={row.value}
              onChange={({ target }) => set({ ...row, value: target.value })}
            />
          )}
        </Field>
      </div>
      <div className={styles.rowEnd}>
        <CheckBox
          label="secret"
          checked={row.secret}
          // What is kept was never read, so it cannot become a value that all see.
          onChange={({ target }) => set({ ...row, secret: target.checked, isKept: row.isKept && target.checked })}
        />
        <span className={styles.checks}>
          {row.secret && row.value !== '' && (
            <Button aria-pressed={isShown} onClick={() => setShown(!isShown)}>
              {isShown ? 'Hide' : 'Show'} the value
            </Button>
          )}
          <Button onClick={remove}>Remove {row.key || 'this variable'}</Button>
        </span>
      </div>
    </>
  );
}
