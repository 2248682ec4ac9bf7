import type { UseInfiniteQueryResult } from '@tanstack/react-query';
import { Button } from './button.js';
import styles from './older.module.css';

/** The button below a list that is read page by page, newest first; nothing once it is whole. */
export function Older({ query }: { query: UseInfiniteQueryResult }) {
  if (!query.hasNextPage) return null;
  return (
    <p className={styles.older}>
      <Button isBusy={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>
        Show older ones
      </Button>
    </p>
  );
}
