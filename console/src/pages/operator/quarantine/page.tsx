import { api } from '../../../data/api/api.js';
import { ConfirmButton } from '../../../parts/controls/confirm-button.js';
import { Page } from '../../../parts/layout/page.js';
import { Empty } from '../../../parts/controls/states.js';
import { Marked } from '../../../parts/values/status.js';
import { Table } from '../../../parts/layout/table.js';
import { Ago } from '../../../parts/values/time.js';
import type { Workload } from '../models.js';
import { MachineLink, OrganizationLink } from '../links.js';
import styles from '../operator.module.css';
import { Paged } from '../paged.js';
import { OPERATED } from '../queries.js';
import { Adopt } from './adopt.js';

export default function QuarantinePage() {
  return (
    <Page title="Quarantine" lead="Which workloads do hosts have that the database does not know?">
      <p className={styles.prose}>
        After a restored backup, a host can have workloads that the database has never heard of. Nobody stops, removes
        or charges them, and their GPUs are not rented out, until you adopt or remove them.
      </p>
      <Paged
        name={['quarantine']}
        read={(query, signal) => api.get('/v1/operator/quarantine', { params: { query }, signal })}
        empty={<Empty title="Nothing is in quarantine">The database knows every workload of every host.</Empty>}
      >
        {(workloads) => <Workloads workloads={workloads} />}
      </Paged>
    </Page>
  );
}

function Workloads({ workloads }: { workloads: readonly Workload[] }) {
  return (
    <Table
      label="Workloads in quarantine"
      rows={workloads}
      keyOf={({ id }) => id}
      columns={[
        { title: 'Workload', cell: (workload) => <Name workload={workload} /> },
        {
          title: 'State',
          cell: ({ state }) => <Marked shape={state === 'running' ? 'dot' : 'ring'}>{state}</Marked>,
        },
        { title: 'Machine', cell: (workload) => <MachineLink {...workload} /> },
        { title: 'Of', cell: (workload) => <Owner workload={workload} /> },
        { title: 'GPUs', cell: ({ gpu_uuids }) => gpu_uuids.length, isNumber: true },
        { title: 'Disk', cell: ({ disk_gb }) => `${disk_gb} GB`, isNumber: true },
        { title: 'Found', cell: ({ found_at }) => <Ago at={found_at} /> },
        { title: 'Acts', cell: (workload) => <Acts workload={workload} /> },
      ]}
    />
  );
}

function Name({ workload: { label, template_name, image, instance_id } }: { workload: Workload }) {
  return (
    <>
      <span className={styles.name}>{label ?? template_name ?? image ?? 'unnamed'}</span>
      <span className={styles.weak}>{instance_id}</span>
    </>
  );
}

function Owner({ workload: { organization_id, organization_name } }: { workload: Workload }) {
  if (organization_id === null) return <>not known</>;
  return <OrganizationLink organization_id={organization_id} organization_name={organization_name} />;
}

function Acts({ workload }: { workload: Workload }) {
  if (workload.removal_requested_at !== null)
    return (
      <>
        removal asked for <Ago at={workload.removal_requested_at} />
      </>
    );
  return (
    <div className={styles.acts}>
      <Adopt workload={workload} />
      <ConfirmButton
        label="Remove"
        about={workload.instance_id}
        title={`Remove the workload and its ${workload.disk_gb} GB disk from ${workload.machine_name}`}
        act={() => api.post('/v1/operator/quarantine/{id}/remove', { params: { path: { id: workload.id } } })}
        old={OPERATED}
      >
        <p>
          {workload.state === 'running' && 'It runs: what it does ends. '}What is on the disk is gone for good
          {workload.organization_name !== null && `, also for ${workload.organization_name}, whose it is`}. Nobody is
          charged or credited. Its host removes it once it is connected, and then its GPUs become free.
        </p>
      </ConfirmButton>
    </div>
  );
}
