import { useInfiniteQuery } from '@tanstack/react-query';
import { api } from '../../data/api/api.js';
import type { Member } from '../../data/api/models.js';
import { itemsOf } from '../../data/api/pages.js';
import { isDemotion, ROLES } from '../../data/api/role.js';
import { ConfirmButton } from '../../parts/controls/confirm-button.js';
import { Older } from '../../parts/controls/older.js';
import { Section } from '../../parts/layout/page.js';
import { Loaded } from '../../parts/controls/states.js';
import { Table } from '../../parts/layout/table.js';
import { Ago } from '../../parts/values/time.js';
import styles from './page.module.css';
import { members } from './queries.js';
import { ChangeRole } from './change-role.js';

/** The members of the organization, for an admin. */
export function Members({ organization, userId }: { organization: string; userId: string }) {
  const query = useInfiniteQuery(members);
  return (
    <Section title="Members">
      <Loaded query={query}>
        {(list) => (
          <Table
            label="Members"
            rows={itemsOf(list)}
            keyOf={({ id }) => id}
            columns={[
              { title: 'Member', cell: (member) => <Person member={member} isMe={member.id === userId} /> },
              { title: 'Role', cell: ({ role }) => role },
              { title: 'Joined', cell: ({ joined_at }) => <Ago at={joined_at} /> },
              {
                title: 'Acts',
                cell: (member) => (
                  <div className={styles.acts}>
                    <ChangeRole member={member} isMe={member.id === userId} />
                    {member.id !== userId && <Remove member={member} organization={organization} />}
                  </div>
                ),
                isNumber: true,
              },
            ]}
          />
        )}
      </Loaded>
      <Older query={query}>Show more</Older>
      <dl className={styles.roles}>
        {ROLES.map(({ value, may }) => (
          <div key={value}>
            <dt>{value}</dt>
            <dd>{may}</dd>
          </div>
        ))}
      </dl>
    </Section>
  );
}

function Person({ member: { name, email }, isMe }: { member: Member; isMe: boolean }) {
  return (
    <div className={styles.person}>
      <span>
        {name}
        {isMe && ' (you)'}
      </span>
      <span className={styles.address}>{email}</span>
    </div>
  );
}

function Remove({ member: { id, email, role }, organization }: { member: Member; organization: string }) {
  const hasKeys = isDemotion(role, 'viewer');
  return (
    <ConfirmButton
      label="Remove"
      about={email}
      title={`Remove ${email} from ${organization}${hasKeys ? ' and revoke their personal API keys' : ''}`}
      act={() => api.delete('/v1/orgs/current/members/{id}', { params: { path: { id } } })}
      old={[['members'], ['audit-log']]}
    >
      <p>
        They see nothing of this organization any more. Instances and team keys belong to the organization and stay:
        replace the access of instances that they know.
      </p>
      {hasKeys && <p>Programs that use their personal keys stop working. Nobody can bring the keys back.</p>}
    </ConfirmButton>
  );
}
