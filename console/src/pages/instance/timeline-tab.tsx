import { useInfiniteQuery } from '@tanstack/react-query';
import { api } from '../../data/api/api.js';
import { inPages, itemsOf } from '../../data/api/pages.js';
import { Older } from '../../parts/controls/older.js';
import { Empty, Loaded } from '../../parts/controls/states.js';
import { Ago } from '../../parts/values/time.js';
import { TimedWords } from '../../parts/values/timed-words.js';
import styles from './page.module.css';

const PAGE = 50;

/** The events of an instance, newest first. Those that come make it old, as all that is read of its events. */
const eventsOf = (id: string) =>
  inPages(
    ['instance', id, 'events', 'all'],
    (page, signal) => api.get('/v1/instances/{id}/events', { params: { path: { id }, query: page }, signal }),
    { limit: PAGE },
  );

/** What has happened to the instance, newest first. */
export function TimelineTab({ id }: { id: string }) {
  const query = useInfiniteQuery(eventsOf(id));
  return (
    <Loaded query={query}>
      {(pages) => {
        const events = itemsOf(pages);
        return (
          <>
            {events.length === 0 && <Empty title="Nothing has happened yet" />}
            <ol className={styles.timeline}>
              {events.map(({ at, kind, message }, index) => (
                <li key={`${at} ${kind} ${index}`}>
                  <Ago at={at} />
                  <span>
                    <TimedWords>{message}</TimedWords>
                  </span>
                </li>
              ))}
            </ol>
            <Older query={query}>Show earlier events</Older>
          </>
        );
      }}
    </Loaded>
  );
}
