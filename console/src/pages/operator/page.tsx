import { useQuery } from '@tanstack/react-query';
import { api } from '../../data/api.js';
import { useNow } from '../../data/clock.js';
import { ConfirmButton } from '../../parts/confirm-button.js';
import { LinkButton } from '../../parts/button.js';
import { Money } from '../../parts/money.js';
import { Page, Section } from '../../parts/page.js';
import { Loaded, Notice } from '../../parts/states.js';
import { Marked } from '../../parts/status.js';
import { Table } from '../../parts/table.js';
import { At } from '../../parts/time.js';
import { FirstMinutes } from './first-minutes.js';
import { gpuSums } from './machine-state.js';
import type { Machine } from './models.js';
import { needsOf, type Need } from './needs.js';
import styles from './operator.module.css';
import { OPERATED, overview, revenue } from './queries.js';

/** A longer list is no list to work through. */
const MOST_SHOWN = 50;

export default function OperatorPage() {
  const query = useQuery(overview);
  return (
    <Page title="Operator" lead="What needs an act now?">
      <FirstMinutes />
      <Loaded query={query} rows={8}>
        {({ isAll, ...situation }) => (
          <>
            {!isAll && (
              <Notice kind="warning">
                There is more than this page reads at once: it covers the newest 2,000 machines and organizations, and
                500 of everything else.
              </Notice>
            )}
            <Needs needs={needsOf(situation)} hasMachines={situation.machines.length > 0} />
            {situation.machines.length > 0 && <Gpus machines={situation.machines} />}
          </>
        )}
      </Loaded>
      <RevenueByDay />
    </Page>
  );
}

function Needs({ needs, hasMachines }: { needs: readonly Need[]; hasMachines: boolean }) {
  if (!hasMachines && needs.length === 0) return null;
  return (
    <Section title="Needs an act now">
      {needs.length === 0 ? (
        <p className={styles.good}>
          <Marked shape="dot">Nothing. All machines are there, and nothing waits for you.</Marked>
        </p>
      ) : (
        <ul className={styles.needs}>
          {needs.slice(0, MOST_SHOWN).map((need) => (
            <NeedLine key={need.key} need={need} />
          ))}
          {needs.length > MOST_SHOWN && <li>And {needs.length - MOST_SHOWN} more.</li>}
        </ul>
      )}
    </Section>
  );
}

function NeedLine({ need: { key, words, why, since, link } }: { need: Need }) {
  return (
    <li>
      <div className={styles.need}>
        {words}
        <span className={styles.weak}>
          {why}{' '}
          {since && (
            <>
              Since <At at={since} />.
            </>
          )}
        </span>
      </div>
      {key === 'clock' && <ConfirmClock />}
      {link && <LinkButton {...link}>{link.words}</LinkButton>}
    </li>
  );
}

function ConfirmClock() {
  return (
    <ConfirmButton
      label="Confirm"
      about="the clock"
      title="Confirm that the clock is right, and let time-outs go on"
      kind="main"
      act={() => api.post('/v1/operator/clock/confirm')}
      old={OPERATED}
    >
      <p>
        First compare the clock of the control plane with a clock that you trust. What is due by it happens at once.
      </p>
    </ConfirmButton>
  );
}

function Gpus({ machines }: { machines: readonly Machine[] }) {
  const now = useNow(10_000);
  return (
    <Section title="GPUs" actions={<LinkButton to="/operator/machines">All machines</LinkButton>}>
      <Table
        label="GPUs by model"
        rows={gpuSums(machines, now)}
        keyOf={([model]) => model}
        columns={[
          { title: 'Model', cell: ([model]) => <span className={styles.name}>{model}</span> },
          { title: 'Sold', cell: ([, { sold }]) => sold, isNumber: true },
          { title: 'Free', cell: ([, { free }]) => free, isNumber: true },
          { title: 'Unhealthy', cell: ([, { unhealthy }]) => unhealthy, isNumber: true },
          { title: 'Away', cell: ([, { away }]) => away, isNumber: true },
          { title: 'Held back', cell: ([, sum]) => sum['held back'] + sum.quarantine, isNumber: true },
          { title: 'All', cell: ([, sum]) => Object.values(sum).reduce((one, other) => one + other), isNumber: true },
        ]}
      />
      <p className={styles.note}>
        Each GPU counts once: those of a machine that is away count as away, also if they are rented. Held back: in
        quarantine, or on a machine that takes no instances. Free ones need an offer to be rented.
      </p>
    </Section>
  );
}

function RevenueByDay() {
  const query = useQuery(revenue);
  return (
    <Section title="Revenue by UTC day">
      <Loaded query={query} rows={2}>
        {(days) =>
          days.length === 0 ? (
            <p className={styles.weak}>Nothing was charged in the last 7 days.</p>
          ) : (
            <Table
              label="Revenue by day"
              rows={days}
              keyOf={({ date }) => date}
              columns={[
                { title: 'Day', cell: ({ date }) => date },
                { title: 'GPUs', cell: ({ gpu_micro }) => <Money micro={gpu_micro} />, isNumber: true },
                { title: 'Disks', cell: ({ disk_micro }) => <Money micro={disk_micro} />, isNumber: true },
                {
                  title: 'All',
                  cell: ({ gpu_micro, disk_micro }) => <Money micro={gpu_micro + disk_micro} />,
                  isNumber: true,
                },
              ]}
            />
          )
        }
      </Loaded>
    </Section>
  );
}
