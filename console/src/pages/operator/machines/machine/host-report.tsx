import { useQuery } from '@tanstack/react-query';
import { useNow } from '../../../../data/api/clock.js';
import { Section } from '../../../../parts/layout/page.js';
import { Loaded } from '../../../../parts/controls/states.js';
import { Marked } from '../../../../parts/values/status.js';
import { takesInstances } from '../../machine-state.js';
import type { Machine } from '../../models.js';
import styles from '../../operator.module.css';
import { DoctorFindings } from '../doctor-findings.js';
import { doctorFindings } from '../queries.js';
import { findingsOf } from './findings.js';

/** What the host has reported that keeps renters away, and what its doctor finds. */
export function HostReport({ machine }: { machine: Machine }) {
  const findings = findingsOf(machine);
  const isOpen = takesInstances(machine, useNow(10_000));
  const doctor = useQuery(doctorFindings(machine.id));
  return (
    <Section title="What its host reports">
      {findings.length === 0 ? (
        <p>
          {isOpen ? (
            <Marked shape="dot">Nothing keeps renters away.</Marked>
          ) : (
            'Its host reports nothing that keeps renters away.'
          )}
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
      {!machine.connected && <p className={styles.note}>It is away: this is what it last reported.</p>}
      <Loaded query={doctor} rows={2}>
        {(found) => <DoctorFindings found={found} />}
      </Loaded>
    </Section>
  );
}
