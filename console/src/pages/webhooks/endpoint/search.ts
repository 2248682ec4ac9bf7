import type { WebhookDelivery } from '../../../data/api/models.js';

/** What the address of an endpoint chooses: the state of the deliveries, and whether the form that changes it is open. */
export interface EndpointSearch {
  state?: WebhookDelivery['state'];
  change?: true;
}

export const STATES: readonly WebhookDelivery['state'][] = ['pending', 'delivered', 'failed'];

/** Reads the address; what it does not know is left out. */
export function endpointSearch({ state, change }: Record<string, unknown>): EndpointSearch {
  const known = STATES.find((each) => each === state);
  return { ...(known === undefined ? {} : { state: known }), ...(change === true ? { change } : {}) };
}
