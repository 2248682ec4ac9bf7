import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { inHours } from '../../data/instances/instances.js';
import type { Offer } from '../../data/api/models.js';
import { nameOfOffer } from '../../data/instances/offers.js';
import { organization } from '../../data/api/queries.js';
import { cpuCores, memory } from '../../../../client/text/sizes.js';
import { inSight, lastsWith } from '../../data/values/times.js';
import { classNames } from '../controls/class-names.js';
import { Hourly } from '../values/money.js';
import { At } from '../values/time.js';
import styles from './offer-row.module.css';

/** Offers below each other, each an {@link OfferRow}. */
export function OfferList({ children }: { children: ReactNode }) {
  return <ul className={styles.list}>{children}</ul>;
}

interface Props {
  offer: Offer;
  /** Why it does not fit; undefined: it does. */
  misfit: string | undefined;
  /** The level of its heading on the page. */
  heading: 'h2' | 'h3';
  /** What can be done with it. */
  children?: ReactNode;
}

/**
 * An offer: what an instance of it gets, what its machine has in total, what it costs, how long the balance lasts with it, and why it does
 * not fit.
 */
export function OfferRow({ offer, misfit, heading: Heading, children }: Props) {
  const { gpu_memory_mb, cpu_cores, memory_mb, price_per_hour_micro, machine } = offer;
  const hours = offer.release_stopped_after_hours;
  return (
    <li className={classNames(styles.offer, misfit !== undefined && styles.weak)}>
      <div>
        <Heading>{nameOfOffer(offer)}</Heading>
        <p className={styles.facts}>
          {gpu_memory_mb !== null && `${memory(gpu_memory_mb)} each, `}
          {cpuCores(cpu_cores)}, {memory(memory_mb)} memory, up to {machine.disk_available_gb} GB disk
        </p>
        <p className={styles.facts}>
          {machine.region === '' ? '' : `${machine.region}, `}
          {machine.name}
          {machine.cuda_version !== null && `, CUDA ${machine.cuda_version}`}
          {machine.vm_capable && ', runs virtual machines'}
        </p>
        <p className={styles.facts}>
          The whole machine: {cpuCores(machine.cpu_cores)}, {memory(machine.memory_mb)} memory
        </p>
        {hours !== null && <p className={styles.facts}>A stopped instance keeps its GPUs for {inHours(hours)}</p>}
        {machine.next_maintenance !== null && (
          <p>
            Maintenance from <At at={machine.next_maintenance} />
          </p>
        )}
        {misfit !== undefined && <p className={styles.misfit}>Does not fit: {misfit}.</p>}
      </div>
      <div className={styles.price}>
        <strong>
          <Hourly micro={price_per_hour_micro} />
        </strong>
        <p>
          <BalanceLasts more={price_per_hour_micro} />
        </p>
      </div>
      {children}
    </li>
  );
}

/** How long the balance lasts with this beside everything that is charged already. */
function BalanceLasts({ more }: { more: number }) {
  const { data } = useQuery(organization);
  if (!data) return null;
  const ms = lastsWith(data, more);
  if (ms === undefined) return <>free of charge</>;
  return ms === 0 ? <>your balance is used up</> : <>your balance lasts {inSight(ms)}</>;
}
