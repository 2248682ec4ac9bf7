import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { timeline } from '../../data/queries.js';
import { Button } from '../../parts/button.js';
import { Empty, Loaded } from '../../parts/states.js';
import { Ago } from '../../parts/time.js';
import { TimedWords } from '../../parts/timed-words.js';
import styles from './page.module.css';

const STEP = 50;

/** What has happened to the instance, newest first. */
export function TimelineTab({ id }: { id: string }) {
  const [count, setCount] = useState(STEP);
  const query = useQuery(timeline(id, count));
  return (
    <Loaded query={query}>
      {(events) => (
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
          {events.length >= count && count < 500 && (
            <Button className={styles.more} onClick={() => setCount(count + STEP)}>
              Show earlier events
            </Button>
          )}
        </>
      )}
    </Loaded>
  );
}
