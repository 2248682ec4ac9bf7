import { useQuery } from '@tanstack/react-query';
import type { Offer } from '../../data/models.js';
import { organization } from '../../data/queries.js';
import { useMay } from '../../data/rights.js';
import { memory } from '../../data/sizes.js';
import { inSight, lastsWith } from '../../data/times.js';
import { LinkButton } from '../../parts/button.js';
import { classNames } from '../../parts/class-names.js';
import { Hourly } from '../../parts/money.js';
import { At } from '../../parts/time.js';
import styles from './page.module.css';

/** An offer: what it is, what it costs, how long the balance lasts with it, and why it does not fit. */
export function OfferRow(props: { offer: Offer; misfit: string | undefined; template: string | undefined }) {
  const { offer, misfit, template } = props;
  const { id, gpu_model, num_gpus, gpu_memory_mb, price_per_hour_micro, machine } = offer;
  const mayDeploy = useMay('change');
  const name = gpu_model === null ? 'No GPU' : `${num_gpus} × ${gpu_model}`;
  return (
    <li className={classNames(styles.offer, misfit !== undefined && styles.weak)}>
      <div>
        <h2>{name}</h2>
        <p className={styles.facts}>
          {gpu_memory_mb !== null && `${memory(gpu_memory_mb)} each, `}
          {machine.cpu_cores} CPU cores, {memory(machine.memory_mb)} memory, {machine.disk_available_gb} GB disk free
        </p>
        <p className={styles.facts}>
          {machine.region === '' ? '' : `${machine.region}, `}
          {machine.name}
          {machine.cuda_version !== null && `, CUDA ${machine.cuda_version}`}
          {machine.vm_capable && ', runs virtual machines'}
        </p>
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
      {misfit === undefined && mayDeploy && (
        <LinkButton kind="main" to="/deploy" search={{ offer: id, ...(template === undefined ? {} : { template }) }}>
          Deploy
        </LinkButton>
      )}
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
