import type { UseInfiniteQueryResult } from '@tanstack/react-query';
import { Button } from './button.js';
import styles from '../older.module.css';

/** The button below a list that is read page by page; nothing once it is whole. `children`: its words, if it is not the newest first. */
export function Older({ query, children = 'Show older ones' }: { query: UseInfiniteQueryResult; children?: string }) {
  if (!query.hasNextPage) return null;
  return (
    <p className={styles.older}>
      <Button isBusy={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>
        {children}
      </Button>
    </p>
  );
}
