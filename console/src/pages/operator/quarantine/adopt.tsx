import { useState } from 'react';
import { Button } from '../../../parts/controls/button.js';
import { Dialog } from '../../../parts/controls/dialog.js';
import type { Workload } from '../models.js';
import { AdoptForm } from './adopt-form.js';

/** Turns a workload into an instance of an organization. */
export function Adopt({ workload }: { workload: Workload }) {
  const [isOpen, setOpen] = useState(false);
  const close = () => setOpen(false);
  const { instance_id, organization_name } = workload;
  return (
    <>
      <Button onClick={() => setOpen(true)} aria-haspopup="dialog" aria-label={`Adopt: ${instance_id}`}>
        Adopt
      </Button>
      <Dialog
        title={`Adopt the workload for ${organization_name ?? 'an organization'}, which pays for it from now on`}
        isOpen={isOpen}
        onClose={close}
      >
        <AdoptForm workload={workload} close={close} />
      </Dialog>
    </>
  );
}
