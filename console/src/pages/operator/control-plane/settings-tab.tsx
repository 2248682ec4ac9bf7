import { useQuery } from '@tanstack/react-query';
import { Loaded } from '../../../parts/controls/states.js';
import { Table } from '../../../parts/layout/table.js';
import type { Setting } from '../models.js';
import styles from '../operator.module.css';
import { settings } from './queries.js';

/** The settings as they stand. */
export function SettingsTab() {
  const query = useQuery(settings);
  return (
    <>
      <p className={styles.prose}>
        Settings are changed where the control plane runs, and count from its next start. Of secrets, only whether they
        are set is known here.
      </p>
      <Loaded query={query} rows={8}>
        {(all) => (
          <Table
            label="Settings"
            rows={all}
            keyOf={({ name }) => name}
            columns={[
              { title: 'Setting', cell: ({ name }) => <code>{name}</code> },
              { title: 'Value', cell: (setting) => <Value setting={setting} /> },
              { title: 'Default', cell: ({ is_default }) => (is_default ? 'default' : 'changed') },
            ]}
          />
        )}
      </Loaded>
    </>
  );
}

function Value({ setting: { value, is_shown, is_set } }: { setting: Setting }) {
  if (!is_shown) return <span className={styles.weak}>{is_set ? 'set, not shown' : 'not set'}</span>;
  return value === null ? <span className={styles.weak}>not set</span> : <code className={styles.text}>{value}</code>;
}
