import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { useState } from 'react';
import { useAct } from '../../../data/forms/act.js';
import { api } from '../../../data/api/api.js';
import { Button, LinkButton } from '../../../parts/controls/button.js';
import { Dialog, DialogActions, LoadedInDialog } from '../../../parts/controls/dialog.js';
import { Field, Select } from '../../../parts/forms/field.js';
import { Form, FormError } from '../../../parts/forms/form.js';
import { CountField } from '../count-field.js';
import { gpuWords } from '../machine-state.js';
import type { Machine, NewOffer } from '../models.js';
import styles from '../operator.module.css';
import { machine as machineOf, MOST_MACHINES, newestMachines, OPERATED } from '../queries.js';
import { NEW_TERMS, termsOf } from './terms.js';
import { TermsFields } from './terms-fields.js';

const route = getRouteApi('/operator/offers');

/** Asks for the machine and the terms of a new offer. The address says for which machine: empty, the first. */
export function CreateDialog() {
  const { machine } = route.useSearch();
  const navigate = route.useNavigate();
  const query = useQuery({ ...newestMachines, enabled: machine !== undefined });
  // The address can name a machine that is not among the newest.
  const isNamed = machine !== undefined && machine !== '';
  const named = useQuery({ ...machineOf(machine ?? ''), enabled: isNamed }).data;
  const close = () => void navigate({ search: ({ machine: _, ...rest }) => rest, replace: true });
  return (
    <Dialog title="Offer GPUs of a machine" isOpen={machine !== undefined} onClose={close}>
      <LoadedInDialog query={query} rows={4} onClose={close}>
        {(machines) => (
          <CreateForm
            machines={withNamed(named, machines).filter(({ lost }) => !lost)}
            isAll={machines.length < MOST_MACHINES}
            chosen={machine ?? ''}
            close={close}
          />
        )}
      </LoadedInDialog>
    </Dialog>
  );
}

function withNamed(named: Machine | undefined, machines: readonly Machine[]): readonly Machine[] {
  return named === undefined || machines.some(({ id }) => id === named.id) ? machines : [named, ...machines];
}

interface Props {
  machines: readonly Machine[];
  /** Whether there are no more machines than these. */
  isAll: boolean;
  chosen: string;
  close: () => void;
}

function CreateForm({ machines, isAll, chosen, close }: Props) {
  const [machineId, setMachineId] = useState(chosen || (machines[0]?.id ?? ''));
  const [count, setCount] = useState('1');
  const [draft, setDraft] = useState(NEW_TERMS);
  const [isTried, setTried] = useState(false);
  const choices = machines.map((each) => ({ value: each.id, label: `${each.name}: ${gpuWords(each)}` }));
  // Until it is read.
  const isListed = chosen === '' || machines.some(({ id }) => id === chosen);
  const read = termsOf(draft);
  const create = useAct(
    (body: NewOffer) => api.post('/v1/operator/offers', { body }),
    [...OPERATED, ['offers']],
    close,
  );
  const submit = () => {
    setTried(true);
    if ('terms' in read) create.mutate({ machine_id: machineId, num_gpus: Number(count), ...read.terms });
  };
  if (machines.length === 0) return <NoMachine close={close} />;
  return (
    <Form className={styles.form} onSubmit={submit} error={create.error}>
      <Field
        name="machine_id"
        label="Machine"
        hint={isAll ? undefined : 'The newest are here. To offer an older one, begin at its own page.'}
      >
        {(tied) => (
          <Select
            {...tied}
            choices={isListed ? choices : [{ value: chosen, label: chosen }, ...choices]}
            value={machineId}
            onChoose={setMachineId}
          />
        )}
      </Field>
      <CountField
        name="num_gpus"
        label="GPUs"
        hint="They are rented together. The offer can be rented as often as the machine has them free."
        max={64}
        value={count}
        onChange={setCount}
      />
      <TermsFields draft={draft} faults={isTried && 'faults' in read ? read.faults : {}} onChange={setDraft} />
      <FormError />
      <DialogActions>
        <Button onClick={close}>Cancel</Button>
        <Button kind="main" type="submit" isBusy={create.isPending}>
          Offer
        </Button>
      </DialogActions>
    </Form>
  );
}

function NoMachine({ close }: { close: () => void }) {
  return (
    <>
      <p>There is no machine yet: add one first.</p>
      <DialogActions>
        <Button onClick={close}>Cancel</Button>
        <LinkButton kind="main" to="/operator/machines/new">
          Add a machine
        </LinkButton>
      </DialogActions>
    </>
  );
}
