import type { Instance } from '../../data/api/models.js';
import { LinkButton } from './button.js';

/** Leads from an instance that has failed to a deploy of the same template on the same offer. */
export function DeployAgain({ instance, kind = 'quiet' }: { instance: Instance; kind?: 'main' | 'quiet' }) {
  return (
    <LinkButton kind={kind} to="/deploy" search={{ offer: instance.offer.id, template: instance.template.id }}>
      Deploy it again
    </LinkButton>
  );
}

/** Leads to what an instance has written. */
export function ToLogs({ instance }: { instance: Instance }) {
  return (
    <LinkButton to="/instances/$id" params={{ id: instance.id }} search={{ tab: 'logs' }}>
      Read its logs
    </LinkButton>
  );
}
