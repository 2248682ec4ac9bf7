import { useState, type ReactNode } from 'react';
import { useAct } from '../../data/forms/act.js';
import { useDraft } from '../../data/forms/draft.js';
import { isDraftKept } from '../../data/api/kept-drafts.js';
import { Button } from '../../parts/controls/button.js';
import { Dialog, DialogActions } from '../../parts/controls/dialog.js';
import { Field, Input } from '../../parts/forms/field.js';
import { Form, FormError } from '../../parts/forms/form.js';
import { Unanswered } from '../../parts/controls/states.js';
import styles from './operator.module.css';
import { OPERATED } from './queries.js';

interface Props {
  /** The word on the button, and the verb of the act. */
  label: string;
  /** What the button is about, for those who hear it alone: `Credit: 1b2c`. */
  about?: string;
  /** What will happen: the title of the dialog. */
  title: string;
  kind?: 'main' | 'danger';
  /** Who reads the reason. */
  hint: string;
  /** The reason that holds now, where there is one. */
  reason?: string;
  /** The word on the button that does nothing: `Cancel` where there is nothing to keep. */
  no?: string;
  act: (reason: string) => Promise<unknown>;
  /** Called when the dialog is closed, sent or not. */
  onClose?: () => void;
  /** Whether what else is filled in can be sent. */
  isComplete?: boolean;
  /** Whether the answer to the same act with this reason was lost: see `useOneRequest`. */
  isUnanswered?: (reason: string) => boolean;
  /** What follows from it, and what else is to be filled in. */
  children: ReactNode;
}

/**
 * A button for an act that has a reason: it asks for the reason, and says what follows. The dialog is open again, with what was typed,
 * when an operator comes back from showing who they are. What else is filled in is a draft, too: see `useDraft`.
 */
export function ReasonButton(props: Props) {
  const { label, about, title } = props;
  const draft = `reason.${location.pathname}.${label}.${about ?? ''}`;
  const [isOpen, setOpen] = useState(() => isDraftKept(draft));
  // Each row of a list has one, and few are ever opened: until then there is no dialog.
  const [wasOpen, setWasOpen] = useState(isOpen);
  const open = () => {
    setOpen(true);
    setWasOpen(true);
  };
  const close = () => {
    setOpen(false);
    props.onClose?.();
  };
  return (
    <>
      <Button onClick={open} aria-haspopup="dialog" aria-label={about === undefined ? undefined : `${label}: ${about}`}>
        {label}
      </Button>
      {wasOpen && (
        <Dialog title={title} isOpen={isOpen} onClose={close}>
          <ReasonForm {...props} draft={draft} onClose={close} />
        </Dialog>
      )}
    </>
  );
}

function ReasonForm({ draft, onClose, ...props }: Props & { draft: string; onClose: () => void }) {
  const { label, kind = 'main', hint, act, isComplete = true, isUnanswered, no = 'Keep it as it is', children } = props;
  const [reason, setReason] = useDraft<string>(draft, props.reason ?? '');
  const acting = useAct(() => act(reason.trim()), OPERATED, onClose);
  return (
    <Form className={styles.form} onSubmit={() => isComplete && acting.mutate()} error={acting.error}>
      {children}
      <Field name="reason" label="Reason" hint={hint}>
        {(tied) => (
          <Input {...tied} required maxLength={256} value={reason} onChange={({ target }) => setReason(target.value)} />
        )}
      </Field>
      <FormError />
      {!acting.isPending && isUnanswered?.(reason.trim()) && <Unanswered />}
      <DialogActions>
        <Button onClick={onClose}>{no}</Button>
        <Button kind={kind} type="submit" isBusy={acting.isPending}>
          {label}
        </Button>
      </DialogActions>
    </Form>
  );
}
