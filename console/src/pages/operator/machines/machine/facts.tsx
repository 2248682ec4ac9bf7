import { memory } from '../../../../../../client/text/sizes.js';
import { clockWords } from '../clock-words.js';
import { CopyLine } from '../../../../parts/controls/copy.js';
import { Facts } from '../../../../parts/layout/facts.js';
import { Ago, At } from '../../../../parts/values/time.js';
import { AgentVersion } from '../agent-version.js';
import type { Machine } from '../../models.js';
import styles from '../../operator.module.css';

/** What a machine is, and where. */
export function MachineFacts({ machine }: { machine: Machine }) {
  return (
    <>
      <Facts
        facts={[
          ['Region', machine.region],
          ['Address for renters', <span className={styles.name}>{machine.public_address}</span>],
          ['Processor', `${machine.cpu_model}, ${machine.cpu_cores} cores`],
          ['Memory', memory(machine.memory_mb)],
          ['Disk free', `${machine.disk_available_gb} of ${machine.disk_gb} GB`],
          [
            'Disk quotas',
            machine.disk_quota_waived ? `${machine.disk_quota}, offered all the same` : machine.disk_quota,
          ],
          ['Driver', machine.driver_version ?? 'none'],
          ['CUDA', machine.cuda_version ?? 'none'],
          ['Agent', <AgentVersion machine={machine} />],
          ['Clock', clockWords(machine.clock_ahead_ms)],
          ['Clock of Docker', clockWords(machine.docker_clock_ahead_ms)],
          ['Last seen', machine.last_seen_at === null ? 'never' : <Ago at={machine.last_seen_at} />],
          ['Enrolled', <At at={machine.enrolled_at} />],
        ]}
      />
      <div className={styles.id}>
        <CopyLine label="Id of the machine" text={machine.id} />
      </div>
    </>
  );
}
