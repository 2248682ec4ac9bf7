import { CopyButton } from '../controls/copy.js';
import styles from '../copy.module.css';

/** Returns the beginning of an id, which tells it from the others of a page. */
export function shortId(id: string): string {
  return id.slice(0, 8);
}

/** The beginning of an id on one line, with a button that copies all of it. */
export function ShortId({ id }: { id: string }) {
  return (
    <span className={styles.short}>
      <code title={id}>{shortId(id)}</code>
      <CopyButton text={id} about={id} />
    </span>
  );
}
