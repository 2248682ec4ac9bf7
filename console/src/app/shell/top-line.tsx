import { useQuery } from '@tanstack/react-query';
import { me, organization } from '../../data/api/queries.js';
import { Hourly, Money } from '../../parts/values/money.js';
import { BalanceLasts } from '../../parts/values/time.js';
import { OrganizationMenu } from './organization-menu.js';
import styles from './top-line.module.css';

/** The line that always says what there is, what it costs and how long it lasts; without an organization there is no money. */
export function TopLine() {
  const { data } = useQuery(me);
  return (
    <header className={styles.top}>
      {data?.active_organization_id === null ? <span /> : <Figures />}
      <div className={styles.menu}>{data && <OrganizationMenu me={data} />}</div>
    </header>
  );
}

function Figures() {
  const { data } = useQuery(organization);
  return (
    <dl className={styles.figures} aria-label="Money">
      <Figure title="Balance">{data && <Money micro={data.balance_micro} />}</Figure>
      <Figure title="Charged">{data && <Hourly micro={data.charged_per_hour_micro ?? 0} />}</Figure>
      <Figure title="Lasts">{data && <BalanceLasts of={data} />}</Figure>
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
