import { Link, type LinkProps } from '@tanstack/react-router';
import styles from './tab-links.module.css';

/** The parts of a page, of which one is shown. Each has an address of its own. */
export function TabLinks({ label, tabs }: { label: string; tabs: readonly (LinkProps & { title: string })[] }) {
  return (
    <nav className={styles.tabs} aria-label={label}>
      {tabs.map(({ title, ...link }) => (
        <Link key={title} {...link} className={styles.tab} activeOptions={{ exact: true, includeSearch: true }}>
          {title}
        </Link>
      ))}
    </nav>
  );
}
