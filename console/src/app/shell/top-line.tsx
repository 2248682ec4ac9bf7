import { useQuery } from '@tanstack/react-query';
import type { Me } from '../../data/models.js';
import { organization } from '../../data/queries.js';
import { Hourly, Money } from '../../parts/money.js';
import { Lasts } from '../../parts/time.js';
import { OrganizationMenu } from './organization-menu.js';
import styles from './top-line.module.css';

/** The line that always says what there is, what it costs and how long it lasts. */
export function TopLine({ me }: { me: Me | undefined }) {
  return (
    <header className={styles.top}>
      {me?.active_organization_id === null ? <span /> : <Figures />}
      {me && <OrganizationMenu me={me} />}
    </header>
  );
}

function Figures() {
  const { data } = useQuery(organization);
  return (
    <dl className={styles.figures} aria-label="Money">
      <Figure title="Balance">{data && <Money micro={data.balance_micro} />}</Figure>
      <Figure title="Burn">{data && <Hourly micro={data.burn_per_hour_micro} />}</Figure>
      <Figure title="Lasts">{data && <Lasts until={data.lasts_until} />}</Figure>
    </dl>
  );
}

function Figure({ title, children }: { title: string; children: React.ReactNode }) {
  return (
    <div className={styles.figure}>
      <dt>{title}</dt>
      <dd>{children || <span className={styles.pending}>…</span>}</dd>
    </div>
  );
}
