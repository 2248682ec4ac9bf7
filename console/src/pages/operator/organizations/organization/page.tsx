import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { CopyLine } from '../../../../parts/copy.js';
import { Facts } from '../../../../parts/facts.js';
import { Hourly, Money } from '../../../../parts/money.js';
import { Page, Section } from '../../../../parts/page.js';
import { Loaded, Notice } from '../../../../parts/states.js';
import { Marked } from '../../../../parts/status.js';
import { Ago, At, Lasts } from '../../../../parts/time.js';
import { InstancesTable } from '../../instances-table.js';
import styles from '../../operator.module.css';
import { operatedOrganization } from '../../queries.js';
import { standing } from '../standing.js';
import { OrganizationActs } from './acts.js';
import { Ledger, Members } from './tables.js';

const route = getRouteApi('/operator/organizations/$id');

export default function OperatedOrganizationPage() {
  const { id } = route.useParams();
  const query = useQuery(operatedOrganization(id));
  return (
    <Page title={query.data?.name ?? 'Organization'} lead="Who are they, what do they have, and how do they stand?">
      <Loaded query={query} rows={8}>
        {(organization) => {
          const { shape, words } = standing(organization);
          const { suspension } = organization;
          return (
            <>
              {suspension !== null && (
                <Notice kind="warning">
                  <p>
                    Suspended <Ago at={suspension.since} />: {suspension.reason}
                  </p>
                  <p>
                    Its instances are destroyed with their disks <Ago at={suspension.disks_kept_until} />, unless you
                    restore it before.
                  </p>
                </Notice>
              )}
              <Facts
                facts={[
                  ['State', <Marked shape={shape}>{words}</Marked>],
                  ['Balance', <Money micro={organization.balance_micro} />],
                  ['Burn', <Hourly micro={organization.burn_per_hour_micro} />],
                  ['Lasts', <Lasts until={organization.lasts_until} />],
                  ['Created', <At at={organization.created_at} />],
                ]}
              />
              <div className={styles.id}>
                <CopyLine label="Id of the organization" text={organization.id} />
              </div>
              <OrganizationActs organization={organization} />
              <Section title="Members">
                <Members id={id} />
              </Section>
              <Section title="Instances">
                <InstancesTable of={{ organization_id: id }} />
              </Section>
              <Section title="Ledger">
                <Ledger id={id} />
              </Section>
            </>
          );
        }}
      </Loaded>
    </Page>
  );
}
