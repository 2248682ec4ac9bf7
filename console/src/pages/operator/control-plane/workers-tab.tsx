import { useQuery } from '@tanstack/react-query';
import { Loaded } from '../../../parts/controls/states.js';
import { Marked } from '../../../parts/values/status.js';
import { Table } from '../../../parts/layout/table.js';
import { Ago } from '../../../parts/values/time.js';
import type { Worker } from '../models.js';
import styles from '../operator.module.css';
import { workers } from './queries.js';

/** The background workers, those that fail first. */
export function WorkersTab() {
  const query = useQuery(workers);
  return (
    <Loaded query={query} rows={8}>
      {(all) => (
        <Table
          label="Workers"
          rows={[...all].sort((one, other) => Number(other.failing) - Number(one.failing))}
          keyOf={({ name }) => name}
          columns={[
            { title: 'Worker', cell: ({ name }) => <span className={styles.name}>{name}</span> },
            { title: 'State', cell: (worker) => <WorkerState worker={worker} /> },
            { title: 'Last run', cell: ({ last_run_at: at }) => (at === null ? 'never' : <Ago at={at} />) },
            {
              title: 'Took',
              cell: ({ last_run_ms: ms }) => (ms === null ? '' : `${ms.toFixed(1)} ms`),
              isNumber: true,
            },
            { title: 'Runs', cell: ({ runs }) => runs, isNumber: true },
            { title: 'Failures', cell: ({ failures }) => failures, isNumber: true },
            { title: 'Last failure', cell: (worker) => <LastFailure worker={worker} /> },
          ]}
        />
      )}
    </Loaded>
  );
}

function WorkerState({ worker: { failing, runs } }: { worker: Worker }) {
  if (failing) return <Marked shape="square">fails</Marked>;
  return runs === 0 ? <Marked shape="ring">has not run</Marked> : <Marked shape="dot">runs</Marked>;
}

function LastFailure({ worker: { last_failure, last_failure_at } }: { worker: Worker }) {
  if (last_failure_at === null) return null;
  return (
    <span className={styles.text}>
      {last_failure} (<Ago at={last_failure_at} />)
    </span>
  );
}
