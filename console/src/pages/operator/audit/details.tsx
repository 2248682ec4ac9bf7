import { Money } from '../../../parts/values/money.js';
import { At } from '../../../parts/values/time.js';
import { InstanceLink } from '../links.js';
import type { AuditEntry } from '../models.js';
import styles from '../operator.module.css';

/** The details of an act as `name: value`: amounts as money, times as times. */
export function Details({ details }: { details: AuditEntry['details'] }) {
  return (
    <span className={styles.text}>
      {Object.entries(details).map(([name, value], index) => (
        <span key={name}>
          {index > 0 && ', '}
          {name.replace(/_(micro|at)$/, '')}: <Value name={name} value={value} />
        </span>
      ))}
    </span>
  );
}

function Value({ name, value }: { name: string; value: unknown }) {
  if (name === 'instance_id' && typeof value === 'string') return <InstanceLink id={value} />;
  if (name.endsWith('_micro') && typeof value === 'number') return <Money micro={value} />;
  if (name.endsWith('_at') && typeof value === 'number') return <At at={new Date(value).toISOString()} />;
  return <>{typeof value === 'string' ? value : JSON.stringify(value)}</>;
}
