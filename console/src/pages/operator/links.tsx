import { Link } from '@tanstack/react-router';
import { shortId } from '../../parts/values/short-id.js';
import styles from './operator.module.css';

export function MachineLink(props: { machine_id: string; machine_name: string }) {
  return (
    <Link className={styles.name} to="/operator/machines/$id" params={{ id: props.machine_id }}>
      {props.machine_name}
    </Link>
  );
}

export function OrganizationLink(props: { organization_id: string; organization_name: string | null }) {
  return (
    <Link className={styles.name} to="/operator/organizations/$id" params={{ id: props.organization_id }}>
      {props.organization_name ?? props.organization_id}
    </Link>
  );
}

/** An instance by the beginning of its id; it leads to the instance alone, with its whole id. */
export function InstanceLink({ id }: { id: string }) {
  return (
    <Link to="/operator/instances" search={{ id }} title={id} aria-label={`instance ${id}`}>
      <code>{shortId(id)}</code>
    </Link>
  );
}

/** A user by name and address. */
export function UserLink({ name, email }: { name: string; email: string }) {
  return (
    <>
      <Link className={styles.name} to="/operator/users" search={{ email }}>
        {name}
      </Link>
      <span className={styles.weak}>{email}</span>
    </>
  );
}
