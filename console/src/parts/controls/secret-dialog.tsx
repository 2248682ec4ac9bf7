import { useBlocker } from '@tanstack/react-router';
import { useRef, type ReactNode } from 'react';
import { Button } from './button.js';
import { CopyLine } from './copy.js';
import { Dialog, DialogActions } from './dialog.js';

interface Props {
  title: string;
  /** What the secret is, for those who hear it. */
  label: string;
  secret: string;
  onClose: () => void;
  /** What it is for, and how long it works. */
  children: ReactNode;
}

/**
 * Shows a secret that nobody can read again. Only its button closes it: Escape, a click beside it and the browser's "back" do nothing, and
 * before the page is left the browser asks.
 */
export function SecretDialog({ title, label, secret, onClose, children }: Props) {
  const isCopied = useRef(false);
  useBlocker({ shouldBlockFn: () => !isCopied.current });
  const close = () => {
    isCopied.current = true;
    onClose();
  };
  return (
    <Dialog title={title} isOpen onClose={close} closesByButtonOnly>
      {children}
      <CopyLine label={label} text={secret} />
      <DialogActions>
        <Button kind="main" onClick={close}>
          I have copied it
        </Button>
      </DialogActions>
    </Dialog>
  );
}
