import { api } from '../../../../data/api/api.js';
import { Section } from '../../../../parts/layout/page.js';
import { Table } from '../../../../parts/layout/table.js';
import { Ago } from '../../../../parts/values/time.js';
import type { MachineEvent } from '../../models.js';
import styles from '../../operator.module.css';
import { Paged } from '../../paged.js';

/** What has happened to a machine, newest first. */
export function MachineEvents({ id }: { id: string }) {
  return (
    <Section title="Events">
      <Paged
        name={['events', id]}
        read={(query, signal) =>
          api.get('/v1/operator/events', { params: { query: { ...query, machine_id: id } }, signal })
        }
        empty={<p className={styles.weak}>Nothing has happened to it.</p>}
      >
        {(events) => (
          <Table
            label="Events"
            rows={events}
            keyOf={(event) => event.id}
            columns={[
              { title: 'When', cell: ({ time }) => <Ago at={time} /> },
              { title: 'Event', cell: (event) => <span className={styles.text}>{wordsOf(event)}</span> },
              { title: 'Type', cell: ({ type }) => <code>{type}</code> },
            ]}
          />
        )}
      </Paged>
    </Section>
  );
}

/** Returns what an event says in words. Later releases can add types: those show their type alone. */
function wordsOf(event: MachineEvent): string {
  switch (event.type) {
    case 'machine.away':
      return 'Its agent is away.';
    case 'machine.back':
      return 'Its agent is connected again.';
    case 'machine.refusing':
      return `It accepts no new instances: ${event.data.reason}`;
    case 'machine.accepting':
      return 'It accepts new instances again.';
    case 'gpu.unhealthy':
      return `The GPU ${event.data.gpu_uuid} is unhealthy: ${event.data.reason ?? 'its host does not say why'}`;
    case 'gpu.disputed':
      return `It reports the GPU ${event.data.gpu_uuid}, which belongs to ${event.data.owner_machine_name}.`;
    case 'gpu.healthy':
      return `The GPU ${event.data.gpu_uuid} is healthy again.`;
    case 'command.stuck':
      return `It has not carried out “${event.data.command}” of the instance ${event.data.instance_id}.`;
    case 'workload.quarantined':
      return `It runs a workload that the database does not know: ${event.data.instance_id}`;
    default:
      return '';
  }
}
