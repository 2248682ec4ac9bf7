import { api } from '../../../data/api.js';
import { Page } from '../../../parts/page.js';
import { Empty } from '../../../parts/states.js';
import { Table } from '../../../parts/table.js';
import { At } from '../../../parts/time.js';
import styles from '../operator.module.css';
import { Paged } from '../paged.js';

export default function OperatorAuditPage() {
  return (
    <Page title="Audit log" lead="What have operators done?">
      <Paged
        name={['audit-log']}
        read={(query, signal) => api.get('/v1/operator/audit-log', { params: { query }, signal })}
        empty={<Empty title="Nothing was done">Here is everything that operators do.</Empty>}
      >
        {(deeds) => (
          <Table
            label="What operators have done"
            rows={deeds}
            keyOf={({ id }) => String(id)}
            columns={[
              {
                title: 'When',
                cell: ({ at }) => (
                  <span className={styles.time}>
                    <At at={at} />
                  </span>
                ),
              },
              { title: 'Action', cell: ({ action }) => action },
              { title: 'By', cell: ({ actor_email }) => <span className={styles.text}>{actor_email}</span> },
              { title: 'To', cell: ({ subject }) => <code className={styles.text}>{subject}</code> },
              { title: 'Details', cell: ({ details }) => <span className={styles.text}>{wordsOf(details)}</span> },
            ]}
          />
        )}
      </Paged>
    </Page>
  );
}

/** Returns the details as `name: value`, one after another. */
function wordsOf(details: object): string {
  return Object.entries(details)
    .map(([name, value]) => `${name}: ${typeof value === 'string' ? value : JSON.stringify(value)}`)
    .join(', ');
}
