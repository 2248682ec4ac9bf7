import type { ReactNode } from 'react';
import styles from '../facts.module.css';

interface FactsProps {
  facts: readonly (readonly [name: string, value: ReactNode])[];
  /** Each in a line of its own, its value at the end. */
  inLines?: boolean;
}

/** Short facts, each under its name. */
export function Facts({ facts, inLines = false }: FactsProps) {
  return (
    <dl className={inLines ? styles.lines : styles.facts}>
      {facts.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}
