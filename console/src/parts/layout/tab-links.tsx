import { Link, type LinkProps } from '@tanstack/react-router';
import { useLayoutEffect, useRef } from 'react';
import { useMoreAside } from './more-aside.js';
import styles from '../tab-links.module.css';

export interface TabLink extends LinkProps {
  title: string;
  isActive: boolean;
}

/** The parts of a page, of which one is shown. Each has an address of its own. Where they have no room, the one that is shown is in sight. */
export function TabLinks({ label, tabs }: { label: string; tabs: readonly TabLink[] }) {
  const nav = useRef<HTMLElement>(null);
  const active = tabs.find(({ isActive }) => isActive)?.title;
  useMoreAside(nav);
  useLayoutEffect(() => {
    const tab = nav.current?.querySelector<HTMLElement>('[data-active=true]');
    // Not `scrollIntoView`, which scrolls the page, too.
    if (nav.current && tab) nav.current.scrollLeft = tab.offsetLeft - (nav.current.clientWidth - tab.offsetWidth) / 2;
  }, [active]);
  return (
    <nav ref={nav} className={styles.tabs} aria-label={label}>
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
