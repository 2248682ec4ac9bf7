import { useState, type ReactNode, type SyntheticEvent } from 'react';
import { useAct } from '../../data/act.js';
import { Button } from '../../parts/button.js';
import { Dialog, DialogActions } from '../../parts/dialog.js';
import { Field, Input } from '../../parts/field.js';
import { ErrorBox, Unanswered } from '../../parts/states.js';
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
  act: (reason: string) => Promise<unknown>;
  /** Whether what else is filled in can be sent. */
  isComplete?: boolean;
  /** Whether the answer to the same act with this reason was lost: see `useOneRequest`. */
  isUnanswered?: (reason: string) => boolean;
  /** What follows from it, and what else is to be filled in. */
  children: ReactNode;
}

/** A button for an act that has a reason: it asks for the reason, and says what follows. */
export function ReasonButton(props: Props) {
  const { label, about, title, kind = 'main', hint, act, isComplete = true, isUnanswered, children } = props;
  const [reason, setReason] = useState<string>();
  // Each row of a list has one, and few are ever opened: until then there is no dialog.
  const [wasOpen, setWasOpen] = useState(false);
  const close = () => setReason(undefined);
  const acting = useAct(() => act((reason ?? '').trim()), OPERATED, close);
  const open = () => {
    acting.reset();
    setReason('');
    setWasOpen(true);
  };
  const submit = (event: SyntheticEvent) => {
    event.preventDefault();
    if (isComplete) acting.mutate();
  };
  return (
    <>
      <Button onClick={open} aria-label={about === undefined ? undefined : `${label}: ${about}`}>
        {label}
      </Button>
      {wasOpen && (
        <Dialog title={title} isOpen={reason !== undefined} onClose={close}>
          <form className={styles.form} onSubmit={submit}>
            {children}
            <Field label="Reason" hint={hint}>
              {(tied) => (
                <Input
                  {...tied}
                  required
                  maxLength={256}
                  value={reason ?? ''}
                  onChange={({ target }) => setReason(target.value)}
                />
              )}
            </Field>
            {acting.error && <ErrorBox error={acting.error} />}
            {!acting.isPending && isUnanswered?.((reason ?? '').trim()) && <Unanswered />}
            <DialogActions>
              <Button onClick={close}>Keep it as it is</Button>
              <Button kind={kind} type="submit" isBusy={acting.isPending}>
                {label}
              </Button>
            </DialogActions>
          </form>
        </Dialog>
      )}
    </>
  );
}
