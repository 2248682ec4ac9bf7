import { AlertDialog } from '@base-ui/react/alert-dialog';
import { Dialog as BaseDialog } from '@base-ui/react/dialog';
import { useState, type ComponentProps, type ReactNode } from 'react';
import { Button } from './button.js';
import styles from '../dialog.module.css';
import { ErrorBox, Loaded } from './states.js';

interface DialogProps {
  title: string;
  isOpen: boolean;
  onClose: () => void;
  /** Set if also Escape does not close it: see `SecretDialog`. */
  closesByButtonOnly?: boolean;
  children: ReactNode;
}

/** A dialog for something small that is filled in or shown once: no click beside it loses that. What is a page of its own is no dialog. */
export function Dialog({ title, isOpen, onClose, closesByButtonOnly = false, children }: DialogProps) {
  const dismiss = (open: boolean) => !open && !closesByButtonOnly && onClose();
  return (
    <BaseDialog.Root disablePointerDismissal open={isOpen} onOpenChange={dismiss}>
      <BaseDialog.Portal>
        <BaseDialog.Backdrop className={styles.backdrop} />
        <BaseDialog.Popup className={styles.popup}>
          <BaseDialog.Title className={styles.title}>{title}</BaseDialog.Title>
          {children}
        </BaseDialog.Popup>
      </BaseDialog.Portal>
    </BaseDialog.Root>
  );
}

/** Shows what a query has read, in a dialog; while there is nothing of it, a button closes the dialog: a phone has no Escape. */
export function LoadedInDialog<T>({ onClose, ...loaded }: ComponentProps<typeof Loaded<T>> & { onClose: () => void }) {
  return (
    <>
      <Loaded {...loaded} />
      {loaded.query.data === undefined && (
        <DialogActions>
          <Button onClick={onClose}>Cancel</Button>
        </DialogActions>
      )}
    </>
  );
}

interface ConfirmProps {
  /** What will happen, as a question or a sentence: "Destroy vLLM-1 and its 80 GB disk". */
  title: string;
  /** The word on the button: the verb of the title. */
  verb: string;
  isOpen: boolean;
  isBusy?: boolean;
  error?: unknown;
  /** `danger`: it cannot be undone. */
  kind?: 'main' | 'danger';
  onConfirm: () => void;
  onClose: () => void;
  /** What follows from it. */
  children: ReactNode;
}

/** Asks before an act with a consequence. It closes by Escape and "Keep it as it is", never by a click beside it. */
export function Confirm(props: ConfirmProps) {
  // Each row of a list has one, and few are ever opened: until then there is no dialog.
  const [wasOpen, setWasOpen] = useState(props.isOpen);
  if (props.isOpen && !wasOpen) setWasOpen(true);
  return wasOpen || props.isOpen ? <Question {...props} /> : null;
}

function Question({ title, verb, isOpen, isBusy = false, error, kind = 'danger', ...rest }: ConfirmProps) {
  const { onConfirm, onClose, children } = rest;
  return (
    <AlertDialog.Root open={isOpen} onOpenChange={(open) => !open && onClose()}>
      <AlertDialog.Portal>
        <AlertDialog.Backdrop className={styles.backdrop} />
        <AlertDialog.Popup className={styles.popup}>
          <AlertDialog.Title className={styles.title}>{title}</AlertDialog.Title>
          <AlertDialog.Description render={<div />} className={styles.words}>
            {children}
          </AlertDialog.Description>
          {error !== undefined && error !== null && <ErrorBox error={error} />}
          <DialogActions>
            <Button onClick={onClose}>Keep it as it is</Button>
            <Button kind={kind} isBusy={isBusy} onClick={onConfirm}>
              {verb}
            </Button>
          </DialogActions>
        </AlertDialog.Popup>
      </AlertDialog.Portal>
    </AlertDialog.Root>
  );
}

/** The buttons at the end of a dialog. */
export function DialogActions({ children }: { children: ReactNode }) {
  return <div className={styles.actions}>{children}</div>;
}
