import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { useNow } from '../../../../data/api/clock.js';
import { LinkButton } from '../../../../parts/controls/button.js';
import { Page, Section } from '../../../../parts/layout/page.js';
import { Loaded } from '../../../../parts/controls/states.js';
import { Marked } from '../../../../parts/values/status.js';
import { InstancesTable } from '../../instances-table.js';
import { machineState } from '../../machine-state.js';
import type { Machine } from '../../models.js';
import styles from '../../operator.module.css';
import { machine } from '../../queries.js';
import { MachineActs } from './acts.js';
import { Credentials } from './credentials.js';
import { Earned } from './earned.js';
import { MachineEvents } from './events.js';
import { MachineFacts } from './facts.js';
import { GpuGrid } from './gpu-grid.js';
import { HostReport } from './host-report.js';
import { Maintenance } from './maintenance.js';
import { MachineOffers } from './offers.js';

const route = getRouteApi('/operator/machines/$id');

export default function MachinePage() {
  const { id } = route.useParams();
  const query = useQuery(machine(id));
  return (
    <Page
      title={query.data?.name ?? 'Machine'}
      lead={query.data && <State machine={query.data} />}
      actions={
        <>
          <LinkButton to="/operator/offers/prices" search={{ machine: id }}>
            Change its prices
          </LinkButton>
          <LinkButton kind="main" to="/operator/offers" search={{ machine: id }}>
            Make an offer
          </LinkButton>
        </>
      }
    >
      <Loaded query={query} rows={8}>
        {(shown) => (
          <>
            <MachineFacts machine={shown} />
            <GpuGrid machine={shown} />
            <HostReport machine={shown} />
            <MachineOffers id={id} />
            <Earned id={id} />
            <Section title="Instances">
              <InstancesTable of={{ machine_id: id }} />
            </Section>
            <Maintenance machine={shown} />
            <MachineActs machine={shown} />
            <Credentials key={id} machine={shown} />
            <MachineEvents id={id} />
          </>
        )}
      </Loaded>
    </Page>
  );
}

function State({ machine: shown }: { machine: Machine }) {
  const { shape, words } = machineState(shown, useNow(10_000));
  return (
    <span className={styles.state}>
      <Marked shape={shape}>{words}</Marked>
    </span>
  );
}
