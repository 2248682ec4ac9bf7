import { useNavigate } from '@tanstack/react-router';
import { api } from '../../../../data/api/api.js';
import { LinkButton } from '../../../../parts/controls/button.js';
import { ConfirmButton } from '../../../../parts/controls/confirm-button.js';
import { Section } from '../../../../parts/layout/page.js';
import type { Machine } from '../../models.js';
import styles from '../../operator.module.css';
import { OPERATED } from '../../queries.js';
import { Notice } from './notice.js';

/** What an operator can do with a machine. The control plane refuses what does not fit its state, and says why. */
export function MachineActs({ machine }: { machine: Machine }) {
  const log = (
    <LinkButton to="/operator/audit" search={{ of: machine.id }}>
      What operators have done
    </LinkButton>
  );
  return (
    <Section title="Acts" actions={log}>
      <div className={styles.acts}>
        {machine.cordoned ? <Uncordon machine={machine} /> : <Cordon machine={machine} />}
        <Notice machine={machine} />
        {machine.disk_quota === 'none' && <Waiver machine={machine} />}
        {machine.gpus.some(({ disputed_with }) => disputed_with) && <AssignGpus machine={machine} />}
        {!machine.lost && !machine.connected && <Lose machine={machine} />}
        <Remove machine={machine} />
      </div>
    </Section>
  );
}

const at = ({ id }: Machine) => ({ params: { path: { id } } });

function Cordon({ machine }: { machine: Machine }) {
  return (
    <ConfirmButton
      label="Cordon"
      title={`Cordon ${machine.name}: nothing new starts on it`}
      kind="main"
      act={() => api.post('/v1/operator/machines/{id}/cordon', at(machine))}
      old={OPERATED}
    >
      <p>Running instances keep running. Its offers cannot be rented, and stopped instances cannot be started.</p>
    </ConfirmButton>
  );
}

function Uncordon({ machine }: { machine: Machine }) {
  return (
    <ConfirmButton
      label="Uncordon"
      title={`Uncordon ${machine.name}: its offers can be rented again`}
      kind="main"
      act={() => api.post('/v1/operator/machines/{id}/uncordon', at(machine))}
      old={OPERATED}
    >
      <p>Stopped instances on it can be started again.</p>
    </ConfirmButton>
  );
}

export function Waiver({ machine }: { machine: Machine }) {
  const path = '/v1/operator/machines/{id}/disk-quota-waiver';
  // Each with a key: the question about one must never turn into the question about the other.
  if (machine.disk_quota_waived)
    return (
      <ConfirmButton
        key="withdraw"
        label="Withdraw waiver"
        title={`Offer ${machine.name} only while it limits the disks of renters`}
        kind="main"
        act={() => api.delete(path, at(machine))}
        old={OPERATED}
      >
        <p>It does not limit them now: its offers cannot be rented any more.</p>
      </ConfirmButton>
    );
  return (
    <ConfirmButton
      key="waive"
      label="Waive quotas"
      title={`Offer ${machine.name} although it does not limit the disks of renters`}
      act={() => api.put(path, at(machine))}
      old={OPERATED}
    >
      <p>One renter can fill the disk that all renters of the machine share.</p>
    </ConfirmButton>
  );
}

/** Gives the machine all GPUs that it reports and that belong to other machines. */
function AssignGpus({ machine }: { machine: Machine }) {
  const disputed = machine.gpus.filter(({ disputed_with }) => disputed_with);
  const gpu_uuids = disputed.map(({ uuid }) => uuid);
  return (
    <ConfirmButton
      label="Assign GPUs"
      title={`Assign ${disputed.length === 1 ? 'this GPU' : `these ${disputed.length} GPUs`} to ${machine.name}`}
      kind="main"
      act={() => api.post('/v1/operator/machines/{id}/assign-gpus', { ...at(machine), body: { gpu_uuids } })}
      old={OPERATED}
    >
      <p>
        Do this only if you know that the cards are in this machine: a host can report any GPU. They can be rented here,
        and no longer on the machine that they belong to now.
      </p>
      <ul>
        {disputed.map(({ uuid, model, disputed_with }) => (
          <li key={uuid}>
            {model} {uuid}, now of {disputed_with?.name}
          </li>
        ))}
      </ul>
    </ConfirmButton>
  );
}

function Lose({ machine }: { machine: Machine }) {
  return (
    <ConfirmButton
      label="Declare lost"
      title={`Declare ${machine.name} lost: its instances end, and their disks count as gone`}
      act={() => api.post('/v1/operator/machines/{id}/lost', at(machine))}
      old={OPERATED}
    >
      <p>
        Do this only if it will not come back. Renters pay for what the host has reported so far, and for nothing that
        it reports later. Stopped instances show that their disks are gone, and cost nothing.
      </p>
    </ConfirmButton>
  );
}

function Remove({ machine }: { machine: Machine }) {
  const navigate = useNavigate();
  return (
    <ConfirmButton
      label="Remove"
      title={`Remove ${machine.name} for good`}
      act={() => api.delete('/v1/operator/machines/{id}', at(machine))}
      old={[
        ['operator', 'machines'],
        ['operator', 'overview'],
      ]}
      onDone={() => void navigate({ to: '/operator/machines' })}
    >
      <p>
        Nobody can bring it back: its host can enroll only as a new machine. Its offers leave the market.{' '}
        {machine.lost
          ? 'Stopped instances on it can never be started again, and workloads in quarantine are forgotten.'
          : 'It must have no instance that is not destroyed, and no workload in quarantine.'}
      </p>
    </ConfirmButton>
  );
}
