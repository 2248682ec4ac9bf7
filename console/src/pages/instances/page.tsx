import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { useState } from 'react';
import type { Instance } from '../../data/api/models.js';
import { useMayStart } from '../../data/instances/may-start.js';
import { itemsOf } from '../../data/api/pages.js';
import { instances, pastInstances } from '../../data/api/queries.js';
import { useMay } from '../../data/api/rights.js';
import { LinkButton } from '../../parts/controls/button.js';
import { CheckBox } from '../../parts/forms/field.js';
import { FirstMinutes } from '../../parts/instances/first-minutes.js';
import { Page, Section } from '../../parts/layout/page.js';
import { Empty, Loaded } from '../../parts/controls/states.js';
import { chosen, grouped } from './choice.js';
import { Destroyed } from './destroyed.js';
import { Filters } from './filters.js';
import { InstanceRow } from './instance-row.js';
import styles from './page.module.css';
import { Several } from './several.js';

const route = getRouteApi('/instances');

export default function InstancesPage() {
  const query = useQuery(instances);
  const { need } = route.useSearch();
  const mayRent = useMay('change');
  const mayStart = useMayStart();
  // The first steps have buttons of their own.
  const isFirst = query.data?.length === 0;
  return (
    <Page
      title="Instances"
      lead="What do I have, and what needs me?"
      actions={
        mayRent &&
        mayStart &&
        !isFirst && (
          <LinkButton kind="main" to="/market">
            Rent a machine
          </LinkButton>
        )
      }
    >
      <Loaded query={query} rows={6}>
        {(items) =>
          need === 'destroyed' ? (
            <Destroyed live={items} />
          ) : items.length === 0 ? (
            <Nothing />
          ) : (
            <Instances items={items} />
          )
        }
      </Loaded>
    </Page>
  );
}

/** For an organization without instances: its first steps, if it never had one. */
function Nothing() {
  const query = useInfiniteQuery(pastInstances);
  const mayChange = useMay('change');
  const mayStart = useMayStart();
  return (
    <Loaded query={query} rows={6}>
      {(past) =>
        itemsOf(past).length === 0 ? (
          <FirstMinutes />
        ) : (
          <Empty
            title="Nothing is rented now"
            action={
              <>
                {mayChange && mayStart && (
                  <LinkButton kind="main" to="/market">
                    Rent a machine
                  </LinkButton>
                )}
                <ToDestroyed />
              </>
            }
          >
            What was rented before is kept, with its cost and its timeline.
          </Empty>
        )
      }
    </Loaded>
  );
}

function ToDestroyed() {
  return (
    <LinkButton to="/instances" search={{ need: 'destroyed' }}>
      Show destroyed instances
    </LinkButton>
  );
}

function Instances({ items }: { items: readonly Instance[] }) {
  const search = route.useSearch();
  const isFiltered = Object.keys(search).length > 0;
  const mayChange = useMay('change');
  const [ids, setIds] = useState<ReadonlySet<string>>(new Set());
  const found = chosen(items, search);
  // Only what is in sight is acted on.
  const selected = found.filter(({ id }) => ids.has(id));
  const hasMany = items.length > 1;
  const select = (id: string, isSelected: boolean) =>
    setIds((before) => new Set(isSelected ? [...before, id] : [...before].filter((each) => each !== id)));
  return (
    <>
      {(hasMany || isFiltered) && <Filters items={items} />}
      {mayChange && (
        <div className={styles.selection}>
          {hasMany && (
            <CheckBox
              label={`Select all ${found.length} shown`}
              checked={found.length > 0 && selected.length === found.length}
              disabled={found.length === 0}
              onChange={({ target }) => setIds(new Set(target.checked ? found.map(({ id }) => id) : []))}
            />
          )}
          <Several selected={selected} onSelectNone={() => setIds(new Set())} />
        </div>
      )}
      {found.length === 0 && (
        <Empty
          title="No instance is like this"
          action={
            <LinkButton to="/instances" search={{}}>
              Show all {items.length}
            </LinkButton>
          }
        />
      )}
      {grouped(found, search.by).map((group) => (
        <Section key={group.title} title={group.title}>
          <ul className={styles.list}>
            {group.items.map((item) => (
              <InstanceRow
                key={item.id}
                instance={item}
                mayAct={mayChange}
                isSelected={ids.has(item.id)}
                {...(hasMany && mayChange ? { onSelect: select } : {})}
              />
            ))}
          </ul>
        </Section>
      ))}
      <ToDestroyed />
    </>
  );
}
