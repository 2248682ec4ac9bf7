import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { api } from '../../data/api/api.js';
import { Hourly } from '../../parts/values/money.js';
import { ShortId } from '../../parts/values/short-id.js';
import { Status } from '../../parts/values/status.js';
import { Table, type Column } from '../../parts/layout/table.js';
import { Ago } from '../../parts/values/time.js';
import { InstanceActs } from './instance-acts.js';
import { searchOf, type InstanceFilter } from './instances/search.js';
import { MachineLink, OrganizationLink } from './links.js';
import type { OperatedInstance } from './models.js';
import styles from './operator.module.css';
import { Paged } from './paged.js';

interface Props {
  of: InstanceFilter;
  /** What stands in the place of no instance. */
  empty?: ReactNode;
}

/** The instances of everybody, or of those that are asked for, that are not destroyed. */
export function InstancesTable({ of, empty = <p className={styles.weak}>None that is not destroyed.</p> }: Props) {
  return (
    <Paged
      name={['instances', ...Object.entries(of).flat().map(String)]}
      read={(query, signal) => api.get('/v1/operator/instances', { params: { query: { ...query, ...of } }, signal })}
      empty={empty}
    >
      {(instances) => <Table label="Instances" rows={instances} keyOf={({ id }) => id} columns={columnsFor(of)} />}
    </Paged>
  );
}

function columnsFor(of: InstanceFilter): Column<OperatedInstance>[] {
  return [
    {
      title: 'Instance',
      cell: ({ id, label }) => (
        <span className={styles.instance} id={id}>
          {label !== null && <span className={styles.name}>{label}</span>}
          <ShortId id={id} />
        </span>
      ),
    },
    {
      title: 'Status',
      cell: ({ status, error_code }) => (
        <>
          <Status status={status} />
          {error_code !== null && <span className={styles.weak}>{error_code}</span>}
        </>
      ),
    },
    { title: 'GPUs', cell: ({ num_gpus }) => num_gpus, isNumber: true },
    { title: 'Price', cell: ({ price_per_hour_micro }) => <Hourly micro={price_per_hour_micro} />, isNumber: true },
    ...(of.organization_id === undefined ? [ORGANIZATION] : []),
    ...(of.machine_id === undefined ? [machineColumn(of)] : []),
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
  ];
}

const ORGANIZATION: Column<OperatedInstance> = {
  title: 'Organization',
  cell: (instance) => <OrganizationLink {...instance} />,
};

const machineColumn = (of: InstanceFilter): Column<OperatedInstance> => ({
  title: 'Machine',
  cell: (instance) => (
    <>
      <MachineLink {...instance} />
      <Link
        className={styles.weak}
        to="/operator/instances"
        search={searchOf({ ...of, machine_id: instance.machine_id })}
        aria-label={`only this machine: ${instance.machine_name}`}
      >
        only this machine
      </Link>
    </>
  ),
});
