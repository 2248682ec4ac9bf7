import { Section } from '../../../../parts/page.js';
import { Marked } from '../../../../parts/status.js';
import type { Machine } from '../../models.js';
import styles from '../../operator.module.css';
import { findingsOf } from './findings.js';

/** What the host has reported that keeps renters away, and where its owner reads the rest. */
export function HostReport({ machine }: { machine: Machine }) {
  const findings = findingsOf(machine);
  return (
    <Section title="What its host reports">
      {findings.length === 0 ? (
        <p>
          <Marked shape="dot">Nothing keeps renters away.</Marked>
        </p>
      ) : (
        <ul className={styles.list} aria-label="Findings">
          {findings.map((finding) => (
            <li key={finding} className={styles.name}>
              {finding}
            </li>
          ))}
        </ul>
      )}
      <p className={styles.note}>
        {machine.connected ? '' : 'It is away: this is what it last reported. '}
        On the host, <code>gpurent-agent doctor</code> looks at everything and says how to mend it.
      </p>
    </Section>
  );
}
