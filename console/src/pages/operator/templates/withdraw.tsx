import { api } from '../../../data/api/api.js';
import type { Template } from '../../../data/api/models.js';
import { ConfirmButton } from '../../../parts/controls/confirm-button.js';

const OLD = [['operator', 'templates'], ['templates']];

/** Takes a system template from all renters. */
export function Withdraw({ template: { id, name }, onDone }: { template: Template; onDone?: () => void }) {
  return (
    <ConfirmButton
      label="Withdraw"
      about={name}
      title={`Withdraw ${name} from all renters for good`}
      act={() => api.delete('/v1/operator/templates/{id}', { params: { path: { id } } })}
      old={OLD}
      {...(onDone && { onDone })}
    >
      <p>Nobody can deploy it any more, and nobody can bring it back. Instances of it go on.</p>
    </ConfirmButton>
  );
}
