import { useAct } from '../../data/forms/act.js';
import { api } from '../../data/api/api.js';
import { Dialog } from '../../parts/controls/dialog.js';
import { EndpointForm, type Given } from './endpoint-form.js';

const NOTHING: Given = { url: '', description: null, types: null, instance_id: null };

interface Props {
  /** Called with its secret as soon as there is an endpoint, also if the dialog is closed by then: the secret must be shown. */
  onCreated: (secret: string) => void;
  onClose: () => void;
}

/** Asks for an endpoint. */
export function EndpointDialog({ onCreated, onClose }: Props) {
  const create = useAct(
    async (body: Given) => onCreated((await api.post('/v1/webhook-endpoints', { body })).secret),
    [['webhooks'], ['audit-log']],
  );
  return (
    <Dialog title="New endpoint" isOpen onClose={onClose}>
      <EndpointForm
        draft="webhook"
        before={NOTHING}
        verb="Create"
        isBusy={create.isPending}
        error={create.error}
        onClose={onClose}
        onSubmit={create.mutate}
      />
    </Dialog>
  );
}
