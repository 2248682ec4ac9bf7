import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useNow } from '../../../../data/api/clock.js';
import { memory } from '../../../../../../client/text/sizes.js';
import { Section } from '../../../../parts/layout/page.js';
import { Marked } from '../../../../parts/values/status.js';
import { OrganizationLink } from '../../links.js';
import { gpuState } from '../../machine-state.js';
import type { Gpu, Machine, OperatedInstance } from '../../models.js';
import styles from '../../operator.module.css';
import { instancesOn } from '../../queries.js';
import grid from './gpu-grid.module.css';
import { gpuUses, type GpuUse } from './gpu-use.js';
import { usageOn } from './queries.js';

const SHAPES = {
  away: 'square',
  missing: 'square',
  unhealthy: 'square',
  quarantine: 'half',
  sold: 'dot',
  'held back': 'dash',
  free: 'ring',
} as const;

/** Each GPU of a machine: how it is, and who rents and uses it. */
export function GpuGrid({ machine }: { machine: Machine }) {
  const now = useNow(10_000);
  const instances = useQuery(instancesOn(machine.id)).data;
  const uses = gpuUses(machine, useQuery(usageOn(machine.id)).data ?? []);
  return (
    <Section title="GPUs">
      <ul className={grid.grid} aria-label="GPUs">
        {machine.gpus.map((gpu) => {
          const state = gpuState(machine, gpu, now);
          return (
            <li key={gpu.uuid} className={grid.card}>
              <Marked shape={SHAPES[state]}>{state}</Marked>
              <strong className={styles.name}>{gpu.model}</strong>
              <span>{memory(gpu.memory_mb)}</span>
              {gpu.reason !== null && <span className={grid.reason}>{gpu.reason}</span>}
              <Holder gpu={gpu} instance={instances?.find(({ id }) => id === gpu.instance_id)} />
              <Use use={uses.get(gpu.uuid)} />
              <code className={styles.weak}>{gpu.uuid}</code>
            </li>
          );
        })}
      </ul>
    </Section>
  );
}

/** Who holds a GPU: an instance of an organization, or a workload in quarantine. */
function Holder({ gpu, instance }: { gpu: Gpu; instance: OperatedInstance | undefined }) {
  if (gpu.quarantine_id !== null) return <Link to="/operator/quarantine">a workload in quarantine</Link>;
  if (gpu.instance_id === null) return null;
  return (
    <span className={styles.name}>
      {instance && (
        <>
          <OrganizationLink {...instance} />
          {': '}
        </>
      )}
      <a href={`#${gpu.instance_id}`}>{instance?.label ?? `instance ${gpu.instance_id.slice(0, 8)}`}</a>
    </span>
  );
}

function Use({ use }: { use: GpuUse | undefined }) {
  if (!use) return null;
  return (
    <span>
      {use.percent} % used, {use.meanPercent} % in the last hour
    </span>
  );
}
