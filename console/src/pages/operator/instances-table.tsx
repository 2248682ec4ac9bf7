import { api } from '../../data/api.js';
import { Hourly } from '../../parts/money.js';
import { Status } from '../../parts/status.js';
import { Table } from '../../parts/table.js';
import { Ago } from '../../parts/time.js';
import { InstanceActs } from './instance-acts.js';
import { MachineLink, OrganizationLink } from './links.js';
import styles from './operator.module.css';
import { Paged } from './paged.js';

/** The instances on a machine or of an organization that are not destroyed. */
export function InstancesTable({ of }: { of: { machine_id: string } | { organization_id: string } }) {
  return (
    <Paged
      name={['instances', ...Object.entries(of).flat()]}
      read={(query, signal) => api.get('/v1/operator/instances', { params: { query: { ...query, ...of } }, signal })}
      empty={<p className={styles.weak}>None that is not destroyed.</p>}
    >
      {(instances) => (
        <Table
          label="Instances"
          rows={instances}
          keyOf={({ id }) => id}
          columns={[
            {
              title: 'Instance',
              cell: ({ id, label }) => (
                <span className={styles.instance} id={id}>
                  {label !== null && <span className={styles.name}>{label}</span>}
                  <code>{id}</code>
                </span>
              ),
            },
            { title: 'Status', cell: ({ status }) => <Status status={status} /> },
            { title: 'GPUs', cell: ({ num_gpus }) => num_gpus, isNumber: true },
            {
              title: 'Price',
              cell: ({ price_per_hour_micro }) => <Hourly micro={price_per_hour_micro} />,
              isNumber: true,
            },
            'machine_id' in of
              ? { title: 'Organization', cell: (instance) => <OrganizationLink {...instance} /> }
              : { title: 'Machine', cell: (instance) => <MachineLink {...instance} /> },
            {
              title: 'Deployed by',
              cell: ({ deployed_by, deployed_by_email }) => (
                <span className={styles.text}>{deployed_by_email ?? deployed_by}</span>
              ),
            },
            {
              title: 'Waits for',
              cell: ({ waits_for }) => <span className={styles.text}>{waits_for?.message ?? ''}</span>,
            },
            { title: 'Since', cell: ({ status_changed_at }) => <Ago at={status_changed_at} /> },
            { title: 'Acts', cell: (instance) => <InstanceActs instance={instance} /> },
          ]}
        />
      )}
    </Paged>
  );
}
