import { api } from '../../data/api/api.js';
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

/** Names an instance of several of an organization: by its label, and by the beginning of its id. */
function nameOf({ id, label, organization_name }: OperatedInstance): string {
  const [short] = id.split('-');
  return `${label === null ? short : `${label} (${short})`} of ${organization_name}`;
}

function Stop({ instance }: Props) {
  const { id } = instance;
  return (
    <ReasonButton
      label="Stop"
      about={id}
      title={`Stop ${nameOf(instance)}`}
      kind="danger"
      hint={RENTER_READS}
      act={(reason) => api.post('/v1/operator/instances/{id}/stop', { ...at(id), body: { reason } })}
    >
      <p>What runs on it ends. The disk is kept and charged, and its renter can start it again.</p>
    </ReasonButton>
  );
}

function Destroy({ instance }: Props) {
  const { id, disk_gb } = instance;
  return (
    <ReasonButton
      label="Destroy"
      about={id}
      title={`Destroy ${nameOf(instance)} and its ${disk_gb} GB disk`}
      kind="danger"
      hint={RENTER_READS}
      act={(reason) => api.delete('/v1/operator/instances/{id}', { ...at(id), body: { reason } })}
    >
      <p>What is on the disk is gone for good. Nobody can bring it back.</p>
    </ReasonButton>
  );
}
