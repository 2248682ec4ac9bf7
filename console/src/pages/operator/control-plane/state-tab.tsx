import { useQuery } from '@tanstack/react-query';
import { duration } from '../../../data/values/times.js';
import { Facts } from '../../../parts/layout/facts.js';
import { Section } from '../../../parts/layout/page.js';
import { Loaded } from '../../../parts/controls/states.js';
import { Marked } from '../../../parts/values/status.js';
import { Ago, At } from '../../../parts/values/time.js';
import { ConfirmClock } from '../confirm-clock.js';
import type { Clock, ControlPlane } from '../models.js';
import styles from '../operator.module.css';
import { clock, controlPlane } from './queries.js';

/** Version, backups and clock. */
export function StateTab() {
  const [state, wallClock] = [useQuery(controlPlane), useQuery(clock)];
  return (
    <>
      <Loaded query={state} rows={4}>
        {(plane) => (
          <>
            <Version plane={plane} />
            <Section title="Backups">
              <Backups backups={plane.backups} />
            </Section>
          </>
        )}
      </Loaded>
      <Section title="Clock">
        <Loaded query={wallClock} rows={1}>
          {(reading) => <WallClock reading={reading} />}
        </Loaded>
      </Section>
    </>
  );
}

function Version({ plane: { version, schema_version, started_at, restored_at } }: { plane: ControlPlane }) {
  return (
    <Section title="Version">
      <Facts
        facts={[
          ['Control plane', version],
          ['Schema of the database', schema_version],
          ['Runs since', <At at={started_at} />],
          ['Database restored', restored_at === null ? 'never' : <At at={restored_at} />],
        ]}
      />
    </Section>
  );
}

function Backups({ backups }: Pick<ControlPlane, 'backups'>) {
  if (backups === null)
    return (
      <p className={styles.prose}>
        <Marked shape="ring">No backups are scheduled.</Marked> Set <code>GPURENT_BACKUP_FOLDER</code>. Copies that you
        make with <code>gpurent-control-plane backup</code> are not known here.
      </p>
    );
  const { folder, every_hours, keep, last_at, usable } = backups;
  return (
    <>
      <Facts
        facts={[
          ['State', <BackupState backups={backups} />],
          ['Newest copy', last_at === null ? 'none' : <Ago at={last_at} />],
          ['Made', `by the daemon, every ${every_hours === 1 ? 'hour' : `${every_hours} hours`}`],
          ['Kept', `the newest ${keep}`],
          ['In', <code>{folder}</code>],
        ]}
      />
      {!usable && (
        <p className={styles.prose}>
          The folder cannot be used. The log of the control plane says why: no backup could be made.
        </p>
      )}
    </>
  );
}

function BackupState({ backups: { usable, overdue } }: { backups: NonNullable<ControlPlane['backups']> }) {
  if (!usable) return <Marked shape="square">folder cannot be used</Marked>;
  return overdue ? <Marked shape="square">overdue</Marked> : <Marked shape="dot">in time</Marked>;
}

function WallClock({ reading: { held, stepped_ms, since } }: { reading: Clock }) {
  if (!held)
    return (
      <p className={styles.prose}>
        <Marked shape="dot">The clock is trusted.</Marked>
      </p>
    );
  return (
    <>
      <p className={styles.prose}>
        <Marked shape="square">The clock is not trusted.</Marked>{' '}
        {stepped_ms !== null && since !== null && (
          <>
            Somebody set it {stepped_ms < 0 ? 'back' : 'forward'} by {duration(Math.abs(stepped_ms))},{' '}
            <Ago at={since} />.
          </>
        )}{' '}
        Time-outs and schedules wait until you confirm it.
      </p>
      <ConfirmClock />
    </>
  );
}
