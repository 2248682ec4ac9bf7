import { useAct } from '../../../../data/forms/act.js';
import { api } from '../../../../data/api/api.js';
import { Button } from '../../../../parts/controls/button.js';
import { ConfirmButton } from '../../../../parts/controls/confirm-button.js';
import { Section } from '../../../../parts/layout/page.js';
import { ErrorBox } from '../../../../parts/controls/states.js';
import type { Machine } from '../../models.js';
import styles from '../../operator.module.css';
import { OPERATED } from '../../queries.js';
import { Enrollment } from '../enrollment.js';

/** How the host of a machine shows who it is, and how it becomes the same machine again. */
export function Credentials({ machine: { id, name } }: { machine: Machine }) {
  const make = useAct(() => api.post('/v1/operator/enrollment-tokens', { body: { machine_id: id } }), OPERATED);
  return (
    <>
      <Section title="Credentials">
        <p className={styles.prose}>
          With a token of its own, the host enrolls again as this machine and keeps its instances: after you have
          revoked its credential, after a year away, or when it has lost its state. Its present credential works until
          the moment at which it has enrolled again, and never after that.
        </p>
        {make.error && <ErrorBox error={make.error} />}
        <div className={styles.acts}>
          <Button isBusy={make.isPending} onClick={() => make.mutate()}>
            Enroll it again
          </Button>
          <ConfirmButton
            label="Revoke credentials"
            title={`Revoke the credentials of ${name} and disconnect it`}
            act={() => api.delete('/v1/operator/machines/{id}/credentials', { params: { path: { id } } })}
            old={OPERATED}
          >
            <p>
              Its workloads keep running, and nobody can stop them from here. It comes back with a new token of this
              machine: press “Enroll it again”.
            </p>
          </ConfirmButton>
        </div>
      </Section>
      {make.data && <Enrollment key={make.data.id} token={make.data} />}
    </>
  );
}
