import type { ReactNode } from 'react';
import { Button } from '../../parts/button.js';
import { CopyLine } from '../../parts/copy.js';
import { Dialog, DialogActions } from '../../parts/dialog.js';

/** Shows the secret that signs the messages, this once. */
export function Secret(props: { title: string; secret: string; onClose: () => void; children?: ReactNode }) {
  const { title, secret, onClose, children } = props;
  return (
    <Dialog title={title} isOpen onClose={onClose}>
      <p>
        Each message is signed with this secret, as the Standard Webhooks specification says. It is shown only now: give
        it to your program.
      </p>
      <CopyLine label="Secret" text={secret} />
      {children}
      <DialogActions>
        <Button kind="main" onClick={onClose}>
          I have kept it
        </Button>
      </DialogActions>
    </Dialog>
  );
}
