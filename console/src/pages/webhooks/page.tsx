import { useQuery } from '@tanstack/react-query';
import { Link, getRouteApi } from '@tanstack/react-router';
import { useState } from 'react';
import type { WebhookEndpoint } from '../../data/api/models.js';
import { me } from '../../data/api/queries.js';
import { roleOf } from '../../data/api/role.js';
import { LinkButton } from '../../parts/controls/button.js';
import { Page } from '../../parts/layout/page.js';
import { Empty, Loaded, Notice } from '../../parts/controls/states.js';
import { Table } from '../../parts/layout/table.js';
import { EndpointState } from './endpoint-state.js';
import { EndpointDialog } from './endpoint-dialog.js';
import styles from './page.module.css';
import { endpoints } from './queries.js';
import { Secret } from './secret.js';

const route = getRouteApi('/webhooks');

export default function WebhooksPage() {
  const user = useQuery(me);
  const { add = false } = route.useSearch();
  const navigate = route.useNavigate();
  const close = () => void navigate({ search: {}, replace: true });
  const [secret, setSecret] = useState<string>();
  const forget = () => {
    setSecret(undefined);
    close();
  };
  const isAdmin = user.data !== undefined && roleOf(user.data) === 'admin';
  return (
    <Page
      title="Webhooks"
      lead="Which of my programs are told what happens, and have they heard it?"
      actions={
        isAdmin && (
          <LinkButton aria-haspopup="dialog" kind="main" to="/webhooks" search={{ add: true }}>
            New endpoint
          </LinkButton>
        )
      }
    >
      <Loaded query={user}>
        {() =>
          isAdmin ? (
            <Endpoints />
          ) : (
            <Notice>
              <p>Only admins of the organization see and change its webhooks.</p>
            </Notice>
          )
        }
      </Loaded>
      {add && isAdmin && secret === undefined && <EndpointDialog onCreated={setSecret} onClose={close} />}
      {secret !== undefined && <Secret title="The endpoint is on" secret={secret} onClose={forget} />}
    </Page>
  );
}

function Endpoints() {
  const query = useQuery(endpoints);
  return (
    <Loaded query={query}>
      {(items) =>
        items.length === 0 ? (
          <Empty
            title="No program is told"
            action={
              <LinkButton aria-haspopup="dialog" to="/webhooks" search={{ add: true }}>
                Add an endpoint
              </LinkButton>
            }
          >
            An endpoint is an https address of yours. It gets a signed message for each event: an instance that has
            stopped, a balance that runs low, a member who has joined.
          </Empty>
        ) : (
          <Table
            label="Endpoints"
            rows={items}
            keyOf={({ id }) => id}
            isWeak={({ enabled }) => !enabled}
            columns={[
              { title: 'Address', cell: (item) => <Address endpoint={item} /> },
              { title: 'State', cell: (item) => <EndpointState endpoint={item} /> },
              { title: 'Events', cell: ({ types }) => <span title={types?.join(', ')}>{eventsOf(types)}</span> },
              { title: 'Of', cell: ({ instance_id }) => (instance_id === null ? 'everything' : 'one instance') },
            ]}
          />
        )
      }
    </Loaded>
  );
}

function eventsOf(types: WebhookEndpoint['types']): string {
  if (types === null) return 'all';
  return types.length === 1 ? (types[0] ?? '') : `${types.length} types`;
}

function Address({ endpoint: { id, url, description } }: { endpoint: WebhookEndpoint }) {
  return (
    <div className={styles.address}>
      <Link to="/webhooks/$id" params={{ id }}>
        {url}
      </Link>
      {description !== null && <span className={styles.description}>{description}</span>}
    </div>
  );
}
