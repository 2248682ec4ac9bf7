import { Link, type LinkProps } from '@tanstack/react-router';
import styles from './tab-links.module.css';

export interface TabLink extends LinkProps {
  title: string;
  isActive: boolean;
}

/** The parts of a page, of which one is shown. Each has an address of its own. */
export function TabLinks({ label, tabs }: { label: string; tabs: readonly TabLink[] }) {
  return (
    <nav className={styles.tabs} aria-label={label}>
      {tabs.map(({ title, isActive, ...link }) => (
        <Link
          key={title}
          {...link}
          className={styles.tab}
          data-active={isActive}
          aria-current={isActive ? 'page' : 'false'}
        >
          {title}
        </Link>
      ))}
    </nav>
  );
}
