import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import { useAct } from '../../../data/forms/act.js';
import { api } from '../../../data/api/api.js';
import { useDraft } from '../../../data/forms/draft.js';
import { hourlyMoney } from '../../../data/values/money.js';
import { Button } from '../../../parts/controls/button.js';
import { DialogActions } from '../../../parts/controls/dialog.js';
import { Field, Input, Select } from '../../../parts/forms/field.js';
import { Form, FormError } from '../../../parts/forms/form.js';
import type { Adoption, OperatedOffer, Workload } from '../models.js';
import styles from '../operator.module.css';
import { OrganizationChoice } from '../organization-choice.js';
import { OPERATED } from '../queries.js';
import { offersOf, templatesFor } from './queries.js';

const LEAST_DISK_GB = 10;

interface Choosing<T> {
  value: string | undefined;
  onChoose: (value: T) => void;
}

/** Asks for what the host does not know of a workload, and for the label of the instance. */
export function AdoptForm({ workload, close }: { workload: Workload; close: () => void }) {
  const { id, offer_id } = workload;
  // What the host names can be gone from the database.
  const lacksOrganization = workload.organization_id === null || workload.organization_name === null;
  const owner = lacksOrganization ? undefined : (workload.organization_id ?? undefined);
  const offers = useQuery({ ...offersOf(workload.machine_id), enabled: offer_id !== null }).data;
  const lacksTemplate = workload.template_id === null || workload.template_name === null;
  const lacksOffer = isGone(offer_id, offers);
  const [given, setGiven] = useDraft<Adoption>(
    `adopt.${id}`,
    // Where the host does not say its terms, its disk stays as large as it is, unless somebody says otherwise.
    offer_id === null ? { disk_gb: Math.max(LEAST_DISK_GB, workload.disk_gb) } : {},
  );
  const [isTried, setTried] = useState(false);
  const set = (changed: Partial<Adoption>) => setGiven((before) => ({ ...before, ...changed }));
  const adopt = useAct(
    (body: Adoption) => api.post('/v1/operator/quarantine/{id}/adopt', { params: { path: { id } }, body }),
    OPERATED,
    close,
  );
  const lacksOwner = lacksOrganization && given.organization_id === undefined;
  const submit = () => {
    setTried(true);
    const { label, ...rest } = given;
    if (!lacksOwner) adopt.mutate(label?.trim() ? { ...rest, label: label.trim() } : rest);
  };
  return (
    <Form className={styles.form} onSubmit={submit} error={adopt.error}>
      <p>
        It becomes an instance, with its disk and the GPUs that it holds.
        {!lacksOrganization && offer_id !== null && ' The host knows for whom it was deployed, and on which terms.'}
        {offer_id !== null && lacksOffer && ' But its offer is not known here: choose the one whose terms apply now.'}
      </p>
      {lacksOrganization && (
        <OrganizationChoice
          label="Organization that gets it"
          chosen={given.organization_id}
          onChoose={(organization_id) =>
            setGiven(({ organization_id: _, template_id: __, ...rest }) => ({
              ...rest,
              ...(organization_id !== undefined && { organization_id }),
            }))
          }
        />
      )}
      {isTried && lacksOwner && <p role="alert">Choose the organization first.</p>}
      {lacksTemplate && (
        <TemplateChoice
          organization={given.organization_id ?? owner}
          value={given.template_id}
          onChoose={(template_id) => set({ template_id })}
        />
      )}
      {lacksOffer && (
        <OfferChoice workload={workload} value={given.offer_id} onChoose={(offer) => set({ offer_id: offer })} />
      )}
      {offer_id === null && (
        <Field name="disk_gb" label="Disk in GB" hint="The organization pays for it.">
          {(tied) => (
            <Input
              {...tied}
              type="number"
              required
              min={LEAST_DISK_GB}
              value={given.disk_gb || ''}
              onChange={({ target }) => set({ disk_gb: Number(target.value) })}
            />
          )}
        </Field>
      )}
      <Field name="label" label="Label" hint="Empty: as it was deployed, or none.">
        {(tied) => (
          <Input
            {...tied}
            maxLength={64}
            value={given.label ?? ''}
            onChange={({ target }) => set({ label: target.value })}
          />
        )}
      </Field>
      <FormError />
      <DialogActions>
        <Button onClick={close}>Keep it as it is</Button>
        <Button kind="main" type="submit" isBusy={adopt.isPending}>
          Adopt
        </Button>
      </DialogActions>
    </Form>
  );
}

/** Tells whether what the host names cannot be chosen here, such as after the restore of an older backup; not until that is known. */
function isGone(id: string | null, known: readonly { id: string }[] | undefined): boolean {
  return id === null || (known !== undefined && !known.some((each) => each.id === id));
}

const NONE_CHOSEN = { value: '', label: 'choose one' };

function TemplateChoice({ organization, value, onChoose }: Choosing<string> & { organization: string | undefined }) {
  const { data = [], error } = useQuery(templatesFor(organization));
  return (
    <Field
      name="template_id"
      label="Template that it shows"
      hint="One of yours or of the organization."
      error={error?.message}
    >
      {(tied) => (
        <Select
          {...tied}
          required
          choices={[NONE_CHOSEN, ...data.map(({ id, name }) => ({ value: id, label: name }))]}
          value={value ?? ''}
          onChoose={onChoose}
        />
      )}
    </Field>
  );
}

function OfferChoice({ workload, value, onChoose }: Choosing<string> & { workload: Workload }) {
  const { machine_id, gpu_uuids } = workload;
  const { data, error } = useQuery(offersOf(machine_id));
  // The control plane refuses offers of another size.
  const fitting = (data ?? []).filter(({ num_gpus }) => num_gpus === gpu_uuids.length);
  const none = (
    <>
      No offer of this machine has {gpu_uuids.length} {gpu_uuids.length === 1 ? 'GPU' : 'GPUs'}.{' '}
      <Link to="/operator/offers" search={{ machine: machine_id }}>
        Make an offer
      </Link>
    </>
  );
  return (
    <Field
      name="offer_id"
      label="Offer whose terms apply"
      hint={data !== undefined && fitting.length === 0 ? none : 'Those of its machine with as many GPUs.'}
      error={error?.message}
    >
      {(tied) => (
        <Select
          {...tied}
          required
          choices={[NONE_CHOSEN, ...fitting.map((offer) => ({ value: offer.id, label: wordsOf(offer) }))]}
          value={value ?? ''}
          onChoose={onChoose}
        />
      )}
    </Field>
  );
}

function wordsOf({ num_gpus, gpu_model, price_per_hour_micro, state }: OperatedOffer): string {
  const words = `${num_gpus} × ${gpu_model ?? 'GPU'}, ${hourlyMoney(price_per_hour_micro)}`;
  return state === 'withdrawn' ? `${words}, withdrawn` : words;
}
