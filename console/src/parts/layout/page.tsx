import type { ReactNode } from 'react';
import styles from '../page.module.css';

interface PageProps {
  title: string;
  /** The question that the page answers, or what is so. */
  lead?: ReactNode;
  /** The acts of the page, at the end of its first line. */
  actions?: ReactNode;
  children: ReactNode;
}

/** The frame of each page: its title, also that of the browser's window, and its acts. */
export function Page({ title, lead, actions, children }: PageProps) {
  return (
    <>
      <title>{`${title} - gpurent`}</title>
      <header className={styles.head}>
        <div className={styles.words}>
          <h1>{title}</h1>
          {lead !== undefined && <p className={styles.lead}>{lead}</p>}
        </div>
        {actions !== undefined && <div className={styles.actions}>{actions}</div>}
      </header>
      {children}
    </>
  );
}

/** A part of a page with a heading of its own. */
export function Section({ title, actions, children }: { title: string; actions?: ReactNode; children: ReactNode }) {
  return (
    <section className={styles.section}>
      <div className={styles.sectionHead}>
        <h2>{title}</h2>
        {actions}
      </div>
      {children}
    </section>
  );
}
