import { useQuery } from '@tanstack/react-query';
import { CopyLine } from '../../../parts/controls/copy.js';
import { Facts } from '../../../parts/layout/facts.js';
import { LinkButton } from '../../../parts/controls/button.js';
import { Section } from '../../../parts/layout/page.js';
import { Empty, Loaded } from '../../../parts/controls/states.js';
import { At } from '../../../parts/values/time.js';
import type { OperatedUser } from '../models.js';
import styles from '../operator.module.css';
import { UserActs } from './acts.js';
import { userWith } from './queries.js';
import { Removals } from './removals.js';

/** The user who signs in with this address. */
export function OneUser({ email }: { email: string }) {
  const query = useQuery(userWith(email));
  return (
    <Loaded query={query} rows={4}>
      {(user) =>
        user === null ? (
          <Empty title="Nobody signs in with this address">It is misspelled, or the account was removed.</Empty>
        ) : (
          <Shown user={user} />
        )
      }
    </Loaded>
  );
}

function Shown({ user }: { user: OperatedUser }) {
  const { id, name, email, is_operator, created_at } = user;
  return (
    <>
      <Facts
        facts={[
          ['Name', <span className={styles.name}>{name}</span>],
          ['Address', <span className={styles.name}>{email}</span>],
          ['Operator', is_operator ? 'yes' : 'no'],
          ['Created', <At at={created_at} />],
        ]}
      />
      <div className={styles.id}>
        <CopyLine label="Id of the user" text={id} />
      </div>
      <Section
        title="Acts"
        actions={
          <div className={styles.acts}>
            <LinkButton to="/operator/organizations" search={{ find: email, by: 'member' }}>
              Their organizations
            </LinkButton>
            <LinkButton to="/operator/audit" search={{ of: id }}>
              What operators have done
            </LinkButton>
          </div>
        }
      >
        <UserActs user={user} />
      </Section>
      <Removals />
    </>
  );
}
