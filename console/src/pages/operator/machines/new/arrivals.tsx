import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { LinkButton } from '../../../../parts/controls/button.js';
import { Hourly } from '../../../../parts/values/money.js';
import { Section } from '../../../../parts/layout/page.js';
import { Loaded } from '../../../../parts/controls/states.js';
import { Marked } from '../../../../parts/values/status.js';
import { Steps, type Task } from '../../../../parts/layout/steps.js';
import { At } from '../../../../parts/values/time.js';
import { gpuWords, limitsNoDisks } from '../../machine-state.js';
import type { Machine, MachineFindings, OperatedOffer } from '../../models.js';
import styles from '../../operator.module.css';
import { DoctorFindings } from '../doctor-findings.js';
import { Waiver } from '../machine/acts.js';
import { findingsOf } from '../machine/findings.js';
import { arrivals, MOST_SHOWN, type Arrival } from './queries.js';

/** The machines that have enrolled since a time, live, until each is on the market. */
export function Arrivals({ since }: { since: string }) {
  const query = useQuery(arrivals(since));
  return (
    <Section title="Enrolled since then">
      <Loaded query={query} rows={1}>
        {(arrived) =>
          arrived.length === 0 ? (
            <p role="status">
              <Marked shape="half">Waiting for the host</Marked>
            </p>
          ) : (
            <>
              <div className={styles.cards}>
                {arrived.map((arrival) => (
                  <Steps key={arrival.machine.id} title={arrival.machine.name} tasks={tasksOf(arrival)} />
                ))}
              </div>
              {arrived.length >= MOST_SHOWN && (
                <p className={styles.after}>
                  Here are the newest {MOST_SHOWN}. <Link to="/operator/machines">All machines, newest first</Link>
                </p>
              )}
            </>
          )
        }
      </Loaded>
    </Section>
  );
}

/** Returns what leads a machine from its enrollment to the market. */
function tasksOf({ machine, offers, doctor }: Arrival): Task[] {
  const findings = findingsOf(machine);
  return [
    { title: 'Enrolled', isDone: true, words: <Enrolled machine={machine} /> },
    { title: 'Connected', isDone: machine.connected, words: <Connected machine={machine} /> },
    {
      title: 'Without findings',
      isDone: machine.connected && findings.length === 0 && !isToMend(doctor),
      words: machine.connected ? (
        <Findings findings={findings} doctor={doctor} />
      ) : (
        'Its agent looks at the host when it connects.'
      ),
      ...(limitsNoDisks(machine) ? { button: () => <Waiver machine={machine} /> } : {}),
    },
    {
      title: 'On the market',
      isDone: offers.some(({ state }) => state === 'available'),
      words: <Offered offers={offers} />,
      button: (kind) => (
        <LinkButton kind={kind} to="/operator/offers" search={offers.length === 0 ? { machine: machine.id } : {}}>
          {offers.length === 0 ? 'Make an offer' : 'Look at its offers'}
        </LinkButton>
      ),
    },
  ];
}

function Enrolled({ machine }: { machine: Machine }) {
  return (
    <>
      <At at={machine.enrolled_at} />, with {gpuWords(machine)}, in {machine.region || 'no region'}.
    </>
  );
}

function Connected({ machine: { connected, agent_version, last_seen_at } }: { machine: Machine }) {
  if (connected) return <>By agent {agent_version ?? 'of an unknown version'}.</>;
  return (
    <>
      {last_seen_at === null ? 'Its agent has not connected yet.' : 'Its agent is not connected any more.'} On its host,{' '}
      <code>journalctl -u gpurent-agent</code> says why.
    </>
  );
}

/** Tells whether the doctor finds that renters cannot be served, or not safely; also while it has yet to report. */
function isToMend({ supported, reported_at, findings }: MachineFindings): boolean {
  return supported && (reported_at === null || findings.some(({ verdict }) => verdict === 'failure'));
}

function Findings({ findings, doctor }: { findings: readonly string[]; doctor: MachineFindings }) {
  return (
    <>
      {findings.length === 0 ? (
        <p>Nothing keeps renters away.</p>
      ) : (
        <ul className={styles.findings}>
          {findings.map((finding) => (
            <li key={finding}>{finding}</li>
          ))}
        </ul>
      )}
      <DoctorFindings found={doctor} />
    </>
  );
}

function Offered({ offers }: { offers: readonly OperatedOffer[] }) {
  if (offers.length === 0) return <>Nobody can rent its GPUs before they have a price.</>;
  return (
    <ul className={styles.findings}>
      {offers.map(({ id, num_gpus, gpu_model, price_per_hour_micro, unavailable_reason }) => (
        <li key={id}>
          {num_gpus} × {gpu_model ?? 'GPU'} for <Hourly micro={price_per_hour_micro} />
          {unavailable_reason !== null && `: ${unavailable_reason}`}
        </li>
      ))}
    </ul>
  );
}
