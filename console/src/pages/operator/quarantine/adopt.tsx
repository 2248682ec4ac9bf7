import { useState } from 'react';
import { useAct } from '../../../data/act.js';
import { api } from '../../../data/api.js';
import { Button } from '../../../parts/button.js';
import { Dialog, DialogActions } from '../../../parts/dialog.js';
import { Field, Input } from '../../../parts/field.js';
import { Form, FormError } from '../../../parts/form.js';
import type { Adoption, Workload } from '../models.js';
import styles from '../operator.module.css';
import { OPERATED } from '../queries.js';

/** What an adoption has to say where the host does not say it. */
const IDS = [
  ['organization_id', 'Id of the organization that gets it'],
  ['template_id', 'Id of the template that it shows'],
  ['offer_id', 'Id of the offer whose terms apply'],
] as const;

const LEAST_DISK_GB = 10;

/** Turns a workload into an instance of an organization. It asks only for what the host does not know. */
export function Adopt({ workload }: { workload: Workload }) {
  const [given, setGiven] = useState<Adoption>();
  const close = () => setGiven(undefined);
  const { id, instance_id, organization_name } = workload;
  const adopt = useAct(
    (body: Adoption) => api.post('/v1/operator/quarantine/{id}/adopt', { params: { path: { id } }, body }),
    OPERATED,
    close,
  );
  const missing = IDS.filter(([name]) => workload[name] === null || isGone(workload, name));
  const submit = () => {
    // Where the host does not say its terms, its disk stays as large as it is.
    const disk = workload.offer_id === null ? { disk_gb: Math.max(LEAST_DISK_GB, workload.disk_gb) } : {};
    adopt.mutate({ ...disk, ...given });
  };
  const open = () => {
    adopt.reset();
    setGiven({});
  };
  return (
    <>
      <Button onClick={open} aria-haspopup="dialog" aria-label={`Adopt: ${instance_id}`}>
        Adopt
      </Button>
      <Dialog
        title={`Adopt the workload for ${organization_name ?? 'an organization'}, which pays for it from now on`}
        isOpen={given !== undefined}
        onClose={close}
      >
        <Form className={styles.form} onSubmit={submit} error={adopt.error}>
          <p>
            It becomes an instance, with its disk and the GPUs that it holds.
            {missing.length === 0 && ' The host knows for whom it was deployed, and on which terms.'}
          </p>
          {missing.map(([name, label]) => (
            <Field key={name} name={name} label={label}>
              {(tied) => (
                <Input
                  {...tied}
                  required
                  value={given?.[name] ?? ''}
                  onChange={({ target }) => setGiven({ ...given, [name]: target.value.trim() })}
                />
              )}
            </Field>
          ))}
          <FormError />
          <DialogActions>
            <Button onClick={close}>Keep it as it is</Button>
            <Button kind="main" type="submit" isBusy={adopt.isPending}>
              Adopt
            </Button>
          </DialogActions>
        </Form>
      </Dialog>
    </>
  );
}

/** Tells whether the host names something that the database does not have. */
function isGone({ organization_name, template_name }: Workload, name: (typeof IDS)[number][0]): boolean {
  return (
    (name === 'organization_id' && organization_name === null) || (name === 'template_id' && template_name === null)
  );
}
