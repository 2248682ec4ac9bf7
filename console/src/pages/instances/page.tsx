import { useQuery } from '@tanstack/react-query';
import { instances } from '../../data/queries.js';
import { LinkButton } from '../../parts/button.js';
import { FirstMinutes } from '../../parts/first-minutes.js';
import { Page } from '../../parts/page.js';
import { Loaded } from '../../parts/states.js';
import { Status } from '../../parts/status.js';

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
      <Loaded query={query}>
        {(items) =>
          items.length === 0 ? (
            <FirstMinutes />
          ) : (
            <ul>
              {items.map(({ id, label, status }) => (
                <li key={id}>
                  {label} <Status status={status} />
                </li>
              ))}
            </ul>
          )
        }
      </Loaded>
    </Page>
  );
}
