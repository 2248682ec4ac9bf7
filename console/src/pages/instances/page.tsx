import { useQuery } from '@tanstack/react-query';
import { NEEDS, needOf, type Need } from '../../data/instances.js';
import type { Instance } from '../../data/models.js';
import { instances } from '../../data/queries.js';
import { LinkButton } from '../../parts/button.js';
import { FirstMinutes } from '../../parts/first-minutes.js';
import { Page, Section } from '../../parts/page.js';
import { Loaded } from '../../parts/states.js';
import { InstanceRow } from './instance-row.js';
import styles from './page.module.css';

const TITLES: Readonly<Record<Need, string>> = {
  ...{ failed: 'Failed: look at these', 'under way': 'Under way', running: 'Running', stopped: 'Stopped' },
  destroyed: 'Destroyed',
};

export default function InstancesPage() {
  const query = useQuery(instances);
  return (
    <Page
      title="Instances"
      lead="What do I have, and what needs me?"
      actions={
        <LinkButton kind="main" to="/market">
          Rent a machine
        </LinkButton>
      }
    >
      <Loaded query={query} rows={6}>
        {(items) => (items.length === 0 ? <FirstMinutes /> : <Groups items={items} />)}
      </Loaded>
    </Page>
  );
}

/** The instances by what they need: first those that failed, last the stopped ones. */
function Groups({ items }: { items: readonly Instance[] }) {
  const groups = NEEDS.map((need) => ({ need, members: items.filter((item) => needOf(item) === need) }));
  return groups
    .filter(({ members }) => members.length > 0)
    .map(({ need, members }) => (
      <Section key={need} title={TITLES[need]}>
        <ul className={styles.list}>
          {members.map((item) => (
            <InstanceRow key={item.id} instance={item} />
          ))}
        </ul>
      </Section>
    ));
}
