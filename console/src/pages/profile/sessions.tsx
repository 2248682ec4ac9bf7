import { useQuery } from '@tanstack/react-query';
import { api } from '../../data/api/api.js';
import type { Session } from '../../data/api/models.js';
import { ConfirmButton } from '../../parts/controls/confirm-button.js';
import { Section } from '../../parts/layout/page.js';
import { Loaded } from '../../parts/controls/states.js';
import { Table } from '../../parts/layout/table.js';
import { Ago } from '../../parts/values/time.js';
import styles from './page.module.css';
import { sessions } from './queries.js';

const OLD = [sessions.queryKey];

/** Where the user is signed in: this browser first, then what was used last. */
export function Sessions() {
  const query = useQuery(sessions);
  const hasOthers = (query.data?.length ?? 0) > 1;
  return (
    <Section title="Where you are signed in" actions={hasOthers && <EndOthers />}>
      <Loaded query={query} rows={2}>
        {(items) => (
          <Table
            label="Sessions"
            rows={inOrder(items)}
            keyOf={({ id }) => id}
            columns={[
              { title: 'Device', cell: (session) => <Device session={session} /> },
              { title: 'Address', cell: ({ address }) => address ?? 'unknown' },
              { title: 'Last used', cell: ({ last_used_at }) => <Ago at={last_used_at} /> },
              { title: 'Signed in', cell: ({ created_at }) => <Ago at={created_at} /> },
              {
                title: 'Acts',
                cell: (session) => (session.is_current ? 'this browser' : <End session={session} />),
                isNumber: true,
              },
            ]}
          />
        )}
      </Loaded>
    </Section>
  );
}

function inOrder(items: readonly Session[]): Session[] {
  return items.toSorted(
    (one, other) =>
      Number(other.is_current) - Number(one.is_current) || other.last_used_at.localeCompare(one.last_used_at),
  );
}

function nameOf({ name, device }: Session): string {
  return name ?? device ?? 'an unknown device';
}

function Device({ session }: { session: Session }) {
  return (
    <div className={styles.device}>
      <span>{nameOf(session)}</span>
      {session.name !== null && session.device !== null && <span className={styles.weak}>{session.device}</span>}
    </div>
  );
}

function End({ session }: { session: Session }) {
  const { id, address } = session;
  const about = `${nameOf(session)}${address === null ? '' : `, from ${address}`}`;
  return (
    <ConfirmButton
      label="End"
      about={about}
      title={`End the session of ${about}`}
      old={OLD}
      act={() => api.delete('/v1/auth/sessions/{id}', { params: { path: { id } } })}
    >
      <p>Whoever uses it has to sign in again. If that is not you, change your password.</p>
    </ConfirmButton>
  );
}

function EndOthers() {
  return (
    <ConfirmButton
      label="End all others"
      title="End all your sessions but this one"
      act={() => api.delete('/v1/auth/sessions')}
      old={OLD}
    >
      <p>Other browsers and programs have to sign in again. API keys go on.</p>
    </ConfirmButton>
  );
}
