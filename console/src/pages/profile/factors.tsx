import { useQuery } from '@tanstack/react-query';
import { api } from '../../data/api/api.js';
import type { SecondFactors } from '../../data/api/models.js';
import { buttonClass } from '../../parts/controls/button.js';
import { ConfirmButton } from '../../parts/controls/confirm-button.js';
import { Section } from '../../parts/layout/page.js';
import { Loaded, Notice } from '../../parts/controls/states.js';
import { Table } from '../../parts/layout/table.js';
import { Ago, At } from '../../parts/values/time.js';
import styles from './page.module.css';
import { secondFactors } from './queries.js';

type Factor = SecondFactors['items'][number];

const KINDS = { totp: 'authenticator app', passkey: 'passkey' } as const;
/** The server's own page: what it shows, such as a QR code and recovery codes, is in no memory of the console. */
const PAGE = '/account/second-factors';
const OLD = [secondFactors.queryKey];

/** The second factors of the user, with the pages of the server that add them. */
export function Factors() {
  const query = useQuery(secondFactors);
  return (
    <Section
      title="Second factors"
      actions={
        <a className={buttonClass()} href={PAGE}>
          Add an app or a passkey
        </a>
      }
    >
      <Loaded query={query} rows={2}>
        {({ items, recovery_codes_left, removal }) => (
          <>
            {removal && <Removal removal={removal} />}
            {items.length === 0 ? (
              <p className={styles.weak}>
                Your password alone lets you in. With a second factor, nobody who learns it can sign in as you.
              </p>
            ) : (
              <>
                <List factors={items} />
                <p className={styles.after}>
                  {recovery_codes_left} recovery {recovery_codes_left === 1 ? 'code is' : 'codes are'} left.{' '}
                  <a href={PAGE}>Make new ones</a>
                </p>
              </>
            )}
          </>
        )}
      </Loaded>
    </Section>
  );
}

function List({ factors }: { factors: readonly Factor[] }) {
  return (
    <Table
      label="Second factors"
      rows={factors}
      keyOf={({ id }) => id}
      columns={[
        { title: 'Name', cell: ({ name }) => name },
        { title: 'Kind', cell: ({ kind }) => KINDS[kind] },
        { title: 'Added', cell: ({ created_at }) => <Ago at={created_at} /> },
        {
          title: 'Last used',
          cell: ({ last_used_at }) => (last_used_at === null ? 'never' : <Ago at={last_used_at} />),
        },
        { title: 'Acts', cell: (factor) => <Remove factor={factor} isLast={factors.length === 1} />, isNumber: true },
      ]}
    />
  );
}

function Remove({ factor: { id, name, kind }, isLast }: { factor: Factor; isLast: boolean }) {
  return (
    <ConfirmButton
      label="Remove"
      about={name}
      title={`Remove the ${KINDS[kind]} ${name}${isLast ? ' and all recovery codes' : ''}`}
      act={() => api.delete('/v1/me/second-factors/{id}', { params: { path: { id } } })}
      old={OLD}
    >
      <p>
        {isLast
          ? 'It is the last one: your password alone lets you in then. Organizations that demand a second factor close to you.'
          : 'You cannot sign in with it any more.'}
      </p>
    </ConfirmButton>
  );
}

function Removal({ removal: { reason, effective_at } }: { removal: NonNullable<SecondFactors['removal']> }) {
  return (
    <Notice kind="warning">
      <p>
        An operator removes all your second factors <Ago at={effective_at} /> (<At at={effective_at} />) and ends your
        sessions. The reason: {reason}
      </p>
      <div>
        <ConfirmButton
          label="Cancel the removal"
          kind="main"
          title="Cancel the removal of your second factors"
          act={() => api.delete('/v1/me/second-factor-removal')}
          old={OLD}
        >
          <p>If you have not asked for it, change your password, too: somebody may know it.</p>
        </ConfirmButton>
      </div>
    </Notice>
  );
}
