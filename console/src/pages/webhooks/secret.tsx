import type { ReactNode } from 'react';
import { SecretDialog } from '../../parts/controls/secret-dialog.js';

/** Shows the secret that signs the messages, this once. */
export function Secret(props: { title: string; secret: string; onClose: () => void; children?: ReactNode }) {
  const { title, secret, onClose, children } = props;
  return (
    <SecretDialog label="Secret" title={title} secret={secret} onClose={onClose}>
      <p>
        Each message is signed with this secret, as the Standard Webhooks specification says. It is shown only now: give
        it to your program.
      </p>
      {children}
    </SecretDialog>
  );
}
