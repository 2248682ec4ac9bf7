import { useAct } from '../../data/act.js';
import { api } from '../../data/api.js';
import { Dialog } from '../../parts/dialog.js';
import { EndpointForm, type Given } from './endpoint-form.js';
import { Secret } from './secret.js';

const NOTHING: Given = { url: '', description: null, types: null, instance_id: null };

/** Asks for an endpoint, then shows its secret, which is shown only once. */
export function EndpointDialog({ onClose }: { onClose: () => void }) {
  const create = useAct((body: Given) => api.post('/v1/webhook-endpoints', { body }), [['webhooks'], ['audit-log']]);
  if (create.data) return <Secret title="The endpoint is on" secret={create.data.secret} onClose={onClose} />;
  return (
    <Dialog title="New endpoint" isOpen onClose={onClose}>
      <EndpointForm
        {...{ draft: 'webhook', before: NOTHING, verb: 'Create', isBusy: create.isPending }}
        {...{ error: create.error, onClose }}
        onSubmit={create.mutate}
      />
    </Dialog>
  );
}
