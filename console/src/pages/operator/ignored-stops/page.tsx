import { api } from '../../../data/api/api.js';
import { exactMoney } from '../../../data/values/money.js';
import { Money } from '../../../parts/values/money.js';
import { Page } from '../../../parts/layout/page.js';
import { Empty } from '../../../parts/controls/states.js';
import { Marked } from '../../../parts/values/status.js';
import { Table } from '../../../parts/layout/table.js';
import { say } from '../../../parts/controls/toast.js';
import { Ago } from '../../../parts/values/time.js';
import { InstanceTabs } from '../instance-tabs.js';
import type { IgnoredStop } from '../models.js';
import { InstanceLink, MachineLink, OrganizationLink } from '../links.js';
import styles from '../operator.module.css';
import { Paged } from '../paged.js';
import { ReasonButton } from '../reason-button.js';

export default function IgnoredStopsPage() {
  return (
    <Page title="Ignored stops" lead="Who was charged after a stop that a host did not carry out?">
      <InstanceTabs shown="ignored stops" />
      <p className={styles.prose}>
        When a host has not confirmed a stop for 30 minutes, the instance is charged again, because it may still be
        used. Credit what its renter did not want to use.
      </p>
      <Paged
        name={['ignored-stops']}
        read={(query, signal) => api.get('/v1/operator/ignored-stops', { params: { query }, signal })}
        empty={
          <Empty title="No stop was ignored">
            Every host has stopped what it was to stop, or you have credited it.
          </Empty>
        }
      >
        {(stops) => <IgnoredStops stops={stops} />}
      </Paged>
    </Page>
  );
}

function IgnoredStops({ stops }: { stops: readonly IgnoredStop[] }) {
  return (
    <Table
      label="Ignored stops"
      rows={stops}
      keyOf={({ instance_id }) => instance_id}
      columns={[
        { title: 'Instance', cell: ({ instance_id }) => <InstanceLink id={instance_id} /> },
        { title: 'Organization', cell: (stop) => <OrganizationLink {...stop} /> },
        { title: 'Machine', cell: (stop) => <MachineLink {...stop} /> },
        { title: 'Charged since', cell: ({ since }) => <Ago at={since} /> },
        {
          title: 'State',
          cell: ({ is_open }) => (
            <Marked shape={is_open ? 'square' : 'ring'}>{is_open ? 'still charged' : 'no longer charged'}</Marked>
          ),
        },
        { title: 'Charged', cell: ({ charged_micro }) => <Money micro={charged_micro} />, isNumber: true },
        { title: 'Acts', cell: (stop) => <Credit stop={stop} /> },
      ]}
    />
  );
}

function Credit({ stop }: { stop: IgnoredStop }) {
  const { instance_id: id, organization_name, charged_micro, is_open } = stop;
  return (
    <ReasonButton
      label="Credit"
      about={id}
      title={`Credit ${organization_name} with ${exactMoney(charged_micro)}, charged after the stop of ${id}`}
      hint="Its members read it in the transactions and the audit log."
      no="Cancel"
      act={(reason) =>
        api
          .post('/v1/operator/instances/{id}/credit-ignored-stop', { params: { path: { id } }, body: { reason } })
          .then(({ amount_micro }) => say(`${organization_name} was credited with ${exactMoney(amount_micro)}`))
      }
    >
      {is_open ? (
        <p>It is still charged: what comes until you credit is in the credit, too. What comes afterwards is not.</p>
      ) : (
        <p>That is all that was charged since the stop.</p>
      )}
    </ReasonButton>
  );
}
