import { Link } from '@tanstack/react-router';
import { costNow, nameOf, sshCommand } from '../../data/instances/instances.js';
import type { Instance } from '../../data/api/models.js';
import { nameOfOffer } from '../../data/instances/offers.js';
import { DeployAgain, ToLogs } from '../../parts/controls/again.js';
import { CopyLine } from '../../parts/controls/copy.js';
import { InstanceActions } from '../../parts/instances/instance-actions.js';
import { Hourly, Money } from '../../parts/values/money.js';
import { LimitWords, Outlook } from '../../parts/values/outlook.js';
import { Reason } from '../../parts/values/progress.js';
import { Status } from '../../parts/values/status.js';
import { Since } from '../../parts/values/time.js';
import styles from './page.module.css';

interface RowProps {
  instance: Instance;
  /** Whether the role of the reader may start, stop and destroy it. */
  mayAct: boolean;
  isSelected: boolean;
  /** Without it the row cannot be selected. */
  onSelect?: (id: string, isSelected: boolean) => void;
}

/** Returns what an instance rents, and where, in a line: `2 × RTX 4090, amber, eu-west`. */
function rentedWords({ machine: { name, region }, ...rented }: Instance): string {
  return [nameOfOffer(rented), name, region].filter((word) => word !== '').join(', ');
}

/** An instance: what it is, how it is and why, what it costs, how one reaches it, and what one can do. */
export function InstanceRow({ instance, mayAct, isSelected, onSelect }: RowProps) {
  const { id, status, status_changed_at, template, spend_micro, label } = instance;
  const command = sshCommand(instance);
  return (
    <li className={styles.row}>
      <div className={styles.what}>
        <div className={styles.title}>
          {onSelect && (
            <input
              type="checkbox"
              className={styles.pick}
              aria-label={`Select ${nameOf(instance)}`}
              checked={isSelected}
              onChange={({ target }) => onSelect(id, target.checked)}
            />
          )}
          <Link to="/instances/$id" params={{ id }} className={styles.name}>
            {nameOf(instance)}
          </Link>
        </div>
        {label !== null && <p className={styles.template}>{template.name}</p>}
        <p className={styles.template}>{rentedWords(instance)}</p>
        <p className={styles.how}>
          <Status status={status} />{' '}
          <span className={styles.since}>
            <Since at={status_changed_at} />
          </span>
        </p>
        <p className={styles.reason}>
          <Reason instance={instance} />
        </p>
        <p className={styles.outlook}>
          <Outlook instance={instance} /> <LimitWords instance={instance} />
        </p>
      </div>
      <dl className={styles.costs}>
        <div>
          <dt>Now</dt>
          <dd>
            <Hourly micro={costNow(instance)} />
          </dd>
        </div>
        <div>
          <dt>So far</dt>
          <dd>
            <Money micro={spend_micro} />
          </dd>
        </div>
      </dl>
      <div className={styles.reach}>
        {command !== undefined && <CopyLine label={`SSH command of ${nameOf(instance)}`} text={command} />}
        {status === 'error' && (
          <div className={styles.again}>
            {mayAct && <DeployAgain instance={instance} />} <ToLogs instance={instance} />
          </div>
        )}
        {mayAct && <InstanceActions instance={instance} />}
      </div>
    </li>
  );
}
