import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { lazy, Suspense, useState } from 'react';
import { api } from '../../data/api/api.js';
import { useNow } from '../../data/api/clock.js';
import type { Organization } from '../../data/api/models.js';
import { mailSettings, me, organization } from '../../data/api/queries.js';
import { may } from '../../data/api/rights.js';
import { Button } from '../../parts/controls/button.js';
import { Dialog } from '../../parts/controls/dialog.js';
import { Hourly, Money } from '../../parts/values/money.js';
import { Section } from '../../parts/layout/page.js';
import { CapMeters, CapsForm } from '../../parts/forms/spend-caps.js';
import { Loaded, Notice, Skeleton } from '../../parts/controls/states.js';
import { At, BalanceLasts } from '../../parts/values/time.js';
import { say } from '../../parts/controls/toast.js';
import { DaysTable } from './days-table.js';
import styles from './page.module.css';
import { DAYS, dailySpend, spendCaps } from './queries.js';

const SpendChart = lazy(async () => ({ default: (await import('./spend-chart.js')).SpendChart }));

/** What there is, when it ends, what each day has cost, and what may be spent. */
export function Overview() {
  const query = useQuery(organization);
  return (
    <>
      <Loaded query={query} rows={2}>
        {(data) => <Figures organization={data} />}
      </Loaded>
      <Section title={`Spend on each of the last ${DAYS} days (UTC)`}>
        <Days organization={query.data} />
      </Section>
      <CapsSection />
      <MailWarnings />
    </>
  );
}

/** Which mails warn of the end of money, if the control plane sends any. */
function MailWarnings() {
  const query = useQuery(mailSettings);
  return (
    <Section title="Warnings by mail">
      <Loaded query={query} rows={1}>
        {({ sends_mail }) => (
          <p className={styles.prose}>
            {sends_mail
              ? 'Mails warn you when the balance lasts less than a day, and when 50, 80 and 100 percent of a cap are used up. '
              : 'This control plane sends no mail: this page and the line at the top say how long the balance lasts. '}
            {sends_mail && <Link to="/profile">Choose which mails you get</Link>}
          </p>
        )}
      </Loaded>
    </Section>
  );
}

function Figures({ organization: data }: { organization: Organization }) {
  const { balance_micro, burn_per_hour_micro, charged_per_hour_micro = 0, lasts_until } = data;
  return (
    <>
      <dl className={styles.figures}>
        <div>
          <dt>Balance</dt>
          <dd>
            <Money micro={balance_micro} />
          </dd>
        </div>
        <div>
          <dt>Charged</dt>
          <dd>
            <Hourly micro={charged_per_hour_micro} />
          </dd>
        </div>
        <div>
          <dt>Lasts</dt>
          <dd>
            <BalanceLasts of={data} />
          </dd>
        </div>
      </dl>
      {lasts_until !== null && balance_micro > 0 && (
        <p className={styles.end}>
          At what is charged now, the balance is zero at <At at={lasts_until} />. Running instances are stopped then.
        </p>
      )}
      {burn_per_hour_micro !== charged_per_hour_micro && (
        <p className={styles.end}>
          A deploy needs a balance that covers an hour of all instances with their disks, which is{' '}
          <Hourly micro={burn_per_hour_micro} />. The disk of an instance is not charged while it runs.
        </p>
      )}
      {balance_micro <= 0 && burn_per_hour_micro === 0 && (
        <Notice kind="warning">
          The balance is <Money micro={balance_micro} />: nothing can be started until money is added.
        </Notice>
      )}
    </>
  );
}

function Days({ organization: data }: { organization: Organization | undefined }) {
  const now = useNow(60_000);
  const query = useQuery(dailySpend);
  return (
    <Loaded query={query} rows={5}>
      {(days) => (
        <>
          <Suspense fallback={<Skeleton rows={5} label="Loading the chart" />}>
            <SpendChart
              days={days}
              balanceMicro={data?.balance_micro ?? 0}
              chargedMicro={data?.charged_per_hour_micro ?? 0}
              now={now}
            />
          </Suspense>
          <DaysTable days={days} />
        </>
      )}
    </Loaded>
  );
}

function CapsSection() {
  const query = useQuery(spendCaps);
  const mayPay = may(useQuery(me).data, 'change_money');
  const [isOpen, setOpen] = useState(false);
  return (
    <Section
      title="Caps of the organization"
      actions={
        mayPay &&
        query.data && (
          <Button onClick={() => setOpen(true)} aria-haspopup="dialog">
            Change the caps
          </Button>
        )
      }
    >
      <Loaded query={query} rows={2}>
        {(caps) => (
          <>
            <CapMeters caps={caps} />
            <Dialog title="Caps of the organization" isOpen={isOpen} onClose={() => setOpen(false)}>
              <CapsForm
                caps={caps}
                read={() => api.get('/v1/orgs/current/spend-caps')}
                save={async (body) => {
                  await api.put('/v1/orgs/current/spend-caps', { body });
                  say('The caps are set');
                }}
                onDone={() => setOpen(false)}
              />
            </Dialog>
          </>
        )}
      </Loaded>
    </Section>
  );
}
