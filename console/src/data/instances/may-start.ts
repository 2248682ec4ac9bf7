import { useQuery } from '@tanstack/react-query';
import type { InstanceAct } from './instance-acts.js';
import type { Instance } from '../api/models.js';
import { organization } from '../api/queries.js';

/** Tells whether the organization may deploy and start instances: it is not suspended, and no payment is disputed. True until that is known. */
export function useMayStart(): boolean {
  const { data } = useQuery(organization);
  return data === undefined || (data.suspension === null && !data.payments_frozen);
}

/** Returns the acts on an instance that its status allows, without a start that the control plane would refuse in any case. */
export function actsOn({ allowed_actions }: Instance, mayStart: boolean): readonly InstanceAct[] {
  return mayStart ? allowed_actions : allowed_actions.filter((act) => act !== 'start');
}
