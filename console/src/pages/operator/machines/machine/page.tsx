import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { useNow } from '../../../../data/clock.js';
import { LinkButton } from '../../../../parts/button.js';
import { CopyLine } from '../../../../parts/copy.js';
import { Facts } from '../../../../parts/facts.js';
import { Page, Section } from '../../../../parts/page.js';
import { Loaded, Notice } from '../../../../parts/states.js';
import { Marked } from '../../../../parts/status.js';
import { Table } from '../../../../parts/table.js';
import { Ago, At } from '../../../../parts/time.js';
import { InstancesTable, OrganizationLink } from '../../instances-table.js';
import { gpuState, machineState } from '../../machine-state.js';
import type { Machine, OperatedInstance } from '../../models.js';
import styles from '../../operator.module.css';
import { instancesOn, machine } from '../../queries.js';
import { MachineActs } from './acts.js';
import { Maintenance } from './maintenance.js';

const route = getRouteApi('/operator/machines/$id');

export default function MachinePage() {
  const { id } = route.useParams();
  const query = useQuery(machine(id));
  return (
    <Page
      title={query.data?.name ?? 'Machine'}
      lead={query.data && <State machine={query.data} />}
      actions={
        <LinkButton kind="main" to="/operator/offers" search={{ machine: id }}>
          Make an offer
        </LinkButton>
      }
    >
      <Loaded query={query} rows={8}>
        {(shown) => (
          <>
            {shown.obstacle !== null && (
              <Notice kind="warning">Its host accepts no new instances: {shown.obstacle}</Notice>
            )}
            <MachineFacts machine={shown} />
            <Gpus machine={shown} />
            <Section title="Instances">
              <InstancesTable of={{ machine_id: id }} />
            </Section>
            <Maintenance machine={shown} />
            <MachineActs machine={shown} />
          </>
        )}
      </Loaded>
    </Page>
  );
}

function State({ machine: shown }: { machine: Machine }) {
  const { shape, words } = machineState(shown, useNow(10_000));
  return <Marked shape={shape}>{words}</Marked>;
}

function MachineFacts({ machine: shown }: { machine: Machine }) {
  return (
    <>
      <Facts
        facts={[
          ['Region', shown.region],
          ['Address for renters', <span className={styles.name}>{shown.public_address}</span>],
          ['Processor', `${shown.cpu_model}, ${shown.cpu_cores} cores`],
          ['Memory', `${Math.floor(shown.memory_mb / 1_024)} GB`],
          ['Disk free', `${shown.disk_available_gb} of ${shown.disk_gb} GB`],
          ['Disk quotas', shown.disk_quota_waived ? `${shown.disk_quota}, offered all the same` : shown.disk_quota],
          ['Driver', shown.driver_version ?? 'none'],
          ['CUDA', shown.cuda_version ?? 'none'],
          ['Agent', shown.agent_version ?? 'not reported'],
          ['Last seen', shown.last_seen_at === null ? 'never' : <Ago at={shown.last_seen_at} />],
          ['Enrolled', <At at={shown.enrolled_at} />],
        ]}
      />
      <div className={styles.id}>
        <CopyLine label="Id of the machine" text={shown.id} />
      </div>
    </>
  );
}

const SHAPES = {
  away: 'square',
  unhealthy: 'square',
  quarantine: 'half',
  sold: 'dot',
  'held back': 'dash',
  free: 'ring',
} as const;

function Gpus({ machine: shown }: { machine: Machine }) {
  const now = useNow(10_000);
  const instances = useQuery(instancesOn(shown.id));
  return (
    <Section title="GPUs">
      <Table
        label="GPUs"
        rows={shown.gpus}
        keyOf={({ uuid }) => uuid}
        columns={[
          { title: 'GPU', cell: ({ model }) => <span className={styles.name}>{model}</span> },
          {
            title: 'State',
            cell: (gpu) => {
              const state = gpuState(shown, gpu, now);
              return <Marked shape={SHAPES[state]}>{state}</Marked>;
            },
          },
          { title: 'Reason', cell: ({ reason }) => <span className={styles.text}>{reason}</span> },
          { title: 'Memory', cell: ({ memory_mb }) => `${Math.floor(memory_mb / 1_024)} GB`, isNumber: true },
          { title: 'Rented by', cell: ({ instance_id }) => <Renter of={instances.data} id={instance_id} /> },
          { title: 'Id', cell: ({ uuid }) => <code>{uuid}</code> },
        ]}
      />
    </Section>
  );
}

/** The organization of the instance that holds a GPU, and the instance. */
function Renter({ of, id }: { of: readonly OperatedInstance[] | undefined; id: string | null }) {
  if (id === null) return null;
  const instance = of?.find((each) => each.id === id);
  return (
    <>
      {instance && <OrganizationLink {...instance} />}
      <span className={styles.weak}>{id}</span>
    </>
  );
}
