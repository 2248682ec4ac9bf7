import { useQuery, useQueryClient } from '@tanstack/react-query';
import { getRouteApi, useNavigate } from '@tanstack/react-router';
import { api } from '../../../data/api/api.js';
import type { WebhookEndpoint } from '../../../data/api/models.js';
import { LinkButton } from '../../../parts/controls/button.js';
import { ConfirmButton } from '../../../parts/controls/confirm-button.js';
import { Page, Section } from '../../../parts/layout/page.js';
import { Loaded, Notice } from '../../../parts/controls/states.js';
import { At } from '../../../parts/values/time.js';
import { EndpointState, reasonOf } from '../endpoint-state.js';
import styles from '../page.module.css';
import { endpoint, endpoints } from '../queries.js';
import { Change, RotateSecret, SendTest, SwitchOnOrOff } from './acts.js';
import { Deliveries } from './deliveries.js';
import { ReplaySince } from './replay-since.js';

const route = getRouteApi('/webhooks/$id');

export default function EndpointPage() {
  const { id } = route.useParams();
  const query = useQuery(endpoint(id));
  return (
    <Page
      title="Webhook"
      lead={query.data?.url ?? 'What has this program heard?'}
      actions={
        <>
          <LinkButton to="/webhooks">All webhooks</LinkButton>
          {query.data && <SendTest endpoint={query.data} />}
        </>
      }
    >
      <Loaded query={query}>{(data) => <About endpoint={data} />}</Loaded>
      <Section title="Deliveries" actions={query.data && <ReplaySince endpoint={query.data} />}>
        <Deliveries id={id} isOn={query.data?.enabled === true} />
      </Section>
    </Page>
  );
}

function About({ endpoint: one }: { endpoint: WebhookEndpoint }) {
  const reason = reasonOf(one);
  return (
    <Section title={one.description ?? 'Endpoint'}>
      {reason !== undefined && (
        <Notice kind="warning">
          <p>It gets no events: {reason}. Switched on, it gets the events from then on.</p>
        </Notice>
      )}
      <dl className={styles.facts}>
        <Fact title="State">
          <EndpointState endpoint={one} />
        </Fact>
        <Fact title="Events">{one.types === null ? 'all' : one.types.join(', ')}</Fact>
        <Fact title="Of">
          {one.instance_id === null ? 'the whole organization' : <code>instances/{one.instance_id}</code>}
        </Fact>
        {one.previous_secret_until !== null && (
          <Fact title="Previous secret">
            signs, too, until <At at={one.previous_secret_until} />
          </Fact>
        )}
      </dl>
      <div className={styles.acts}>
        <Change endpoint={one} />
        <SwitchOnOrOff endpoint={one} />
        <RotateSecret endpoint={one} />
        <Delete endpoint={one} />
      </div>
    </Section>
  );
}

function Fact({ title, children }: { title: string; children: React.ReactNode }) {
  return (
    <div>
      <dt>{title}</dt>
      <dd>{children}</dd>
    </div>
  );
}

function Delete({ endpoint: { id, url } }: { endpoint: WebhookEndpoint }) {
  const navigate = useNavigate();
  const queries = useQueryClient();
  const leave = () => {
    queries.setQueryData(endpoints.queryKey, (all) => all?.filter((one) => one.id !== id));
    void navigate({ to: '/webhooks' });
  };
  return (
    <ConfirmButton
      label="Delete"
      title={`Delete the endpoint ${url} and the log of its deliveries`}
      act={() => api.delete('/v1/webhook-endpoints/{id}', { params: { path: { id } } })}
      old={[['audit-log']]}
      onDone={leave}
    >
      <p>Its pending deliveries are not made. Nobody can bring the log back.</p>
    </ConfirmButton>
  );
}
