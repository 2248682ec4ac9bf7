import { useInfiniteQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import type { Instance } from '../../data/api/models.js';
import { itemsOf } from '../../data/api/pages.js';
import { pastInstances } from '../../data/api/queries.js';
import { Older } from '../../parts/controls/older.js';
import { Section } from '../../parts/layout/page.js';
import { Empty, Loaded } from '../../parts/controls/states.js';
import { chosen, grouped } from './choice.js';
import { Filters } from './filters.js';
import { InstanceRow } from './instance-row.js';
import styles from './page.module.css';

const route = getRouteApi('/instances');

/** The instances that are destroyed, newest first. They are read page by page, among those that are not. */
export function Destroyed({ live }: { live: readonly Instance[] }) {
  const search = route.useSearch();
  const query = useInfiniteQuery(pastInstances);
  return (
    <>
      <Filters items={live} />
      <Loaded query={query} rows={6}>
        {(past) => {
          const found = chosen(itemsOf(past), search);
          return (
            <>
              {found.length === 0 && !query.hasNextPage && <Empty title="No destroyed instance is like this" />}
              {grouped(found, search.by).map((group) => (
                <Section key={group.title} title={group.title}>
                  <ul className={styles.list}>
                    {group.items.map((item) => (
                      <InstanceRow key={item.id} instance={item} mayAct={false} isSelected={false} />
                    ))}
                  </ul>
                </Section>
              ))}
              <Older query={query} />
            </>
          );
        }}
      </Loaded>
    </>
  );
}
