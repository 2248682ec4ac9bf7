import { api } from '../../data/api.js';
import type { OperatedInstance } from './models.js';
import styles from './operator.module.css';
import { ReasonButton } from './reason-button.js';

interface Props {
  instance: OperatedInstance;
}

const at = (id: string) => ({ params: { path: { id } } });
const RENTER_READS = 'Its renter reads it in the timeline of the instance.';
const GOING: readonly OperatedInstance['status'][] = ['destroying', 'destroyed'];

/** What an operator can do with an instance of anybody. */
export function InstanceActs({ instance }: Props) {
  return (
    <div className={styles.acts}>
      {instance.status === 'running' && <Stop instance={instance} />}
      {!GOING.includes(instance.status) && <Destroy instance={instance} />}
    </div>
  );
}

function Stop({ instance: { id, organization_name } }: Props) {
  return (
    <ReasonButton
      label="Stop"
      about={id}
      title={`Stop an instance of ${organization_name}`}
      kind="danger"
      hint={RENTER_READS}
      act={(reason) => api.post('/v1/operator/instances/{id}/stop', { ...at(id), body: { reason } })}
    >
      <p>What runs on it ends. The disk is kept and charged, and its renter can start it again.</p>
    </ReasonButton>
  );
}

function Destroy({ instance: { id, organization_name, disk_gb } }: Props) {
  return (
    <ReasonButton
      label="Destroy"
      about={id}
      title={`Destroy an instance of ${organization_name} and its ${disk_gb} GB disk`}
      kind="danger"
      hint={RENTER_READS}
      act={(reason) => api.delete('/v1/operator/instances/{id}', { ...at(id), body: { reason } })}
    >
      <p>What is on the disk is gone for good. Nobody can bring it back.</p>
    </ReasonButton>
  );
}
