import { Button } from '../controls/button.js';
import { CheckBox, Field, Input, Select } from '../forms/field.js';
import { GUARDS } from '../../data/instances/port-guards.js';
import { newPort, type FieldsProps, type PortRow } from './draft.js';
import styles from './template-form.module.css';

const MOST = 16;
const PROTOCOLS = (['http', 'tcp', 'udp'] as const).map((value) => ({ value, label: value }));
const ALL_GUARDS = (['proxy', 'bearer', 'none'] as const).map((value) => ({ value, label: GUARDS[value] }));
/** The access proxy of the host speaks http only. */
const GUARDS_BESIDE_HTTP = ALL_GUARDS.filter(({ value }) => value !== 'proxy');

/** The ports that instances open, and who may reach them. */
export function PortFields({ draft: { ports }, faults, change }: FieldsProps) {
  const set = (row: PortRow) => change({ ports: ports.map((each) => (each.rowKey === row.rowKey ? row : each)) });
  return (
    <>
      <p className={styles.hint}>
        What listens on other ports cannot be reached from outside. SSH and JupyterLab need no line here.
      </p>
      <ul className={styles.rows}>
        {ports.map((row, index) => (
          <li key={row.rowKey} className={styles.row}>
            <Cells name={`ports.${index}`} row={row} fault={faults[`ports.${row.rowKey}`]} set={set} />
            <div className={styles.rowEnd}>
              {row.protocol === 'http' ? (
                <CheckBox
                  label="the open button leads here"
                  checked={row.open_button}
                  onChange={({ target }) => set({ ...row, open_button: target.checked })}
                />
              ) : (
                <span />
              )}
              <Button onClick={() => change({ ports: ports.filter(({ rowKey }) => rowKey !== row.rowKey) })}>
                Remove {row.port === '' ? 'this port' : `port ${row.port}`}
              </Button>
            </div>
          </li>
        ))}
      </ul>
      <Button disabled={ports.length >= MOST} onClick={() => change({ ports: [...ports, newPort()] })}>
        Add a port
      </Button>
    </>
  );
}

interface CellsProps {
  name: string;
  row: PortRow;
  fault: string | undefined;
  set: (row: PortRow) => void;
}

function Cells({ name, row, fault, set }: CellsProps) {
  const setProtocol = (protocol: PortRow['protocol']) =>
    set(
      protocol === 'http'
        ? { ...row, protocol }
        : { ...row, protocol, open_button: false, guard: row.guard === 'proxy' ? 'none' : row.guard },
    );
  return (
    <div className={styles.port}>
      <Field name={name} label="Port" error={fault}>
        {(tied) => (
          <Input
            {...tied}
            inputMode="numeric"
            value={row.port}
            onChange={({ target }) => set({ ...row, port: target.value.trim() })}
          />
        )}
      </Field>
      <Field label="Protocol">
        {(tied) => <Select {...tied} choices={PROTOCOLS} value={row.protocol} onChoose={setProtocol} />}
      </Field>
      <Field name={`${name}.label`} label="Name of the port">
        {(tied) => (
          <Input
            {...tied}
            maxLength={64}
            value={row.label}
            onChange={({ target }) => set({ ...row, label: target.value })}
          />
        )}
      </Field>
      <Field label="Access">
        {(tied) => (
          <Select
            {...tied}
            choices={row.protocol === 'http' ? ALL_GUARDS : GUARDS_BESIDE_HTTP}
            value={row.guard}
            onChoose={(guard) => set({ ...row, guard })}
          />
        )}
      </Field>
    </div>
  );
}
