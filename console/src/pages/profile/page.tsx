import { useQuery } from '@tanstack/react-query';
import type { Me } from '../../data/api/models.js';
import { me } from '../../data/api/queries.js';
import { buttonClass } from '../../parts/controls/button.js';
import { Page, Section } from '../../parts/layout/page.js';
import { Loaded } from '../../parts/controls/states.js';
import { At } from '../../parts/values/time.js';
import { Companies } from './companies.js';
import { Mails } from './mails.js';
import styles from './page.module.css';
import { Factors } from './factors.js';
import { Sessions } from './sessions.js';

export default function ProfilePage() {
  const query = useQuery(me);
  return (
    <Page title="Account" lead="Who am I here, how do I prove it, and where am I signed in?">
      <Loaded query={query}>{(user) => <WhoIAm me={user} />}</Loaded>
      <Factors />
      <Sessions />
      <Mails />
      <Companies />
    </Page>
  );
}

function WhoIAm({ me: { user, memberships } }: { me: Me }) {
  return (
    <Section
      title={user.name}
      actions={
        <a className={buttonClass()} href="/account/password">
          Change the password
        </a>
      }
    >
      <p>
        {user.email}, since <At at={user.created_at} />
        {user.is_operator && ', operator'}
      </p>
      {memberships.length === 0 ? (
        <p className={styles.weak}>You belong to no organization.</p>
      ) : (
        <ul className={styles.weak}>
          {memberships.map(({ organization_id, name, role }) => (
            <li key={organization_id}>
              {role} of {name}
            </li>
          ))}
        </ul>
      )}
    </Section>
  );
}
