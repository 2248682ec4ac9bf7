import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { Organization } from '../../data/api/models.js';
import { organization } from '../../data/api/queries.js';
import { Notice } from '../../parts/controls/states.js';
import { At } from '../../parts/values/time.js';

/** Says why nothing can be deployed or started: an operator has suspended the organization, or a payment is disputed. */
export function SuspensionLine() {
  const { data } = useQuery(organization);
  return (
    <div role="status" aria-label="Suspension">
      {data?.suspension && <Suspended suspension={data.suspension} />}
      {data?.payments_frozen === true && <Frozen />}
    </div>
  );
}

function Suspended({
  suspension: { reason, disks_kept_until },
}: {
  suspension: NonNullable<Organization['suspension']>;
}) {
  return (
    <Notice kind="warning">
      <p>
        <strong>An operator has suspended this organization: {reason}</strong>
      </p>
      <p>
        Running instances are stopped. Nothing can be deployed or started, and nobody can be invited. You can read
        everything, pay, and destroy instances.
      </p>
      <p>
        Disks are kept until <At at={disks_kept_until} />, and are charged. Then stopped instances are destroyed with
        their disks. Ask the operator to restore the organization.
      </p>
    </Notice>
  );
}

function Frozen() {
  return (
    <Notice kind="warning">
      <p>
        <strong>A payment of this organization is disputed.</strong> Nothing can be deployed or started until the
        dispute is closed, and stopped instances do not keep their GPUs.
      </p>
      <p>
        Running instances go on while the balance lasts. You can read everything, pay, stop and destroy instances.{' '}
        <Link to="/billing" search={{ tab: 'transactions', kind: 'dispute' }}>
          See the disputed payments
        </Link>
        , or ask the operator.
      </p>
    </Notice>
  );
}
