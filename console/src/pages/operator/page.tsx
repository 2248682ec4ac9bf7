import { useQuery } from '@tanstack/react-query';
import { LinkButton } from '../../parts/controls/button.js';
import { Page, Section } from '../../parts/layout/page.js';
import { Loaded } from '../../parts/controls/states.js';
import { Table } from '../../parts/layout/table.js';
import { FirstMinutes } from './first-minutes.js';
import type { Overview } from './models.js';
import { NeedsList } from './needs-list.js';
import styles from './operator.module.css';
import { overview } from './queries.js';
import { Revenue } from './revenue.js';

export default function OperatorPage() {
  const query = useQuery(overview);
  return (
    <Page title="Operator" lead="What needs an act now?">
      <FirstMinutes />
      <Loaded query={query} rows={8}>
        {({ machines, gpus, needs }) => {
          const hasMachines = machines.connected + machines.away + machines.lost > 0;
          return (
            <>
              {(hasMachines || needs.length > 0) && <NeedsList needs={needs} />}
              {hasMachines && <Gpus machines={machines} gpus={gpus} />}
            </>
          );
        }}
      </Loaded>
      <Revenue />
    </Page>
  );
}

function Gpus({ machines, gpus }: Pick<Overview, 'machines' | 'gpus'>) {
  return (
    <Section title="GPUs" actions={<LinkButton to="/operator/machines">All machines</LinkButton>}>
      <p className={styles.note}>
        Machines: {machines.connected.toLocaleString('en-US')} connected, {machines.away.toLocaleString('en-US')} away,{' '}
        {machines.lost.toLocaleString('en-US')} lost.
      </p>
      <Table
        label="GPUs by model"
        rows={gpus}
        keyOf={({ gpu_model }) => gpu_model ?? ''}
        columns={[
          {
            title: 'Model',
            cell: ({ gpu_model }) => <span className={styles.name}>{gpu_model ?? 'further models'}</span>,
          },
          { title: 'Sold', cell: ({ sold }) => sold, isNumber: true },
          { title: 'Free', cell: ({ free }) => free, isNumber: true },
          { title: 'Unhealthy', cell: ({ unhealthy }) => unhealthy, isNumber: true },
          { title: 'Away', cell: ({ away }) => away, isNumber: true },
          { title: 'Held back', cell: ({ held_back, quarantined }) => held_back + quarantined, isNumber: true },
          { title: 'All', cell: ({ total }) => total, isNumber: true },
        ]}
      />
      <p className={styles.note}>
        Each GPU counts once. Sold: rented, also while it is unhealthy or its machine is away. Away: not rented, on a
        machine that is away, or any of a lost machine. Held back: in quarantine, or on a machine that takes no
        instances. Free ones need an offer to be rented.
      </p>
    </Section>
  );
}
