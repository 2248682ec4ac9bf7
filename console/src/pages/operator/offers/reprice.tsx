import { useState } from 'react';
import { useAct } from '../../../data/forms/act.js';
import { api } from '../../../data/api/api.js';
import { changedFields } from '../../../data/forms/changed-fields.js';
import { Button } from '../../../parts/controls/button.js';
import { Dialog, DialogActions } from '../../../parts/controls/dialog.js';
import { Form, FormError } from '../../../parts/forms/form.js';
import type { OperatedOffer } from '../models.js';
import styles from '../operator.module.css';
import { OPERATED } from '../queries.js';
import { countRentals } from './rentals.js';
import { draftOf, termsOf, type Terms } from './terms.js';
import { TermsFields } from './terms-fields.js';

/** Changes the terms of an offer. */
export function Reprice({ offer }: { offer: OperatedOffer }) {
  const [isOpen, setOpen] = useState(false);
  const close = () => setOpen(false);
  return (
    <>
      <Button onClick={() => setOpen(true)} aria-haspopup="dialog" aria-label={`Reprice: ${nameOf(offer)}`}>
        Reprice
      </Button>
      <Dialog title={`Reprice ${nameOf(offer)}`} isOpen={isOpen} onClose={close}>
        <RepriceForm offer={offer} close={close} />
      </Dialog>
    </>
  );
}

/** Returns an offer in words: `2 × H100 of rack-7`. */
export function nameOf({ num_gpus, gpu_model, machine }: OperatedOffer): string {
  return `${num_gpus} × ${gpu_model ?? 'GPU'} of ${machine.name}`;
}

function RepriceForm({ offer, close }: { offer: OperatedOffer; close: () => void }) {
  const [before] = useState(() => draftOf(offer));
  const [draft, setDraft] = useState(before);
  const [isTried, setTried] = useState(false);
  const read = termsOf(draft);
  const change = useAct(
    (body: Partial<Terms>) => api.patch('/v1/operator/offers/{id}', { params: { path: { id: offer.id } }, body }),
    [...OPERATED, ['offers']],
    close,
  );
  const submit = () => {
    setTried(true);
    const was = termsOf(before);
    if ('terms' in read && 'terms' in was) change.mutate(changedFields(was.terms, read.terms));
  };
  return (
    <Form className={styles.form} onSubmit={submit} error={change.error}>
      <p>
        The new terms apply to instances that are deployed from now on. Those of before keep theirs:{' '}
        {countRentals([offer])} at present.
      </p>
      <TermsFields draft={draft} faults={isTried && 'faults' in read ? read.faults : {}} onChange={setDraft} />
      <FormError />
      <DialogActions>
        <Button onClick={close}>Keep it as it is</Button>
        <Button kind="main" type="submit" isBusy={change.isPending}>
          Reprice
        </Button>
      </DialogActions>
    </Form>
  );
}
