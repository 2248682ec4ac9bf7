import { useQuery, useQueryClient } from '@tanstack/react-query';
import type { Me } from './models.js';
import { me } from './queries.js';
import { keptKey, nameOf } from './request-keys.js';
import { sendOnce } from './send-once.js';

type Headers = Record<'Idempotency-Key', string>;

/**
 * Sends requests that make something, each with one Idempotency-Key until an answer says what has become of it. So what is asked for
 * again after its answer was lost is made once: also after a reload or a proof, and in a form that was closed and filled in again.
 */
export interface OneRequest<Body> {
  /** `terms` are sent beside the body, which alone says whether a request is the same: after a lost answer, those of the first try. */
  send: <Answer, Terms = undefined>(
    body: Body,
    request: (headers: Headers, terms: Terms) => Promise<Answer>,
    terms?: Terms,
  ) => Promise<Answer>;
  /** Tells whether this was asked for, and nobody knows whether it was made. */
  isUnanswered: (body: Body) => boolean;
}

/** Returns how the user asks for something for their organization. `act` tells requests apart whose bodies can be equal. */
export function useOneRequest<Body extends object>(act: string): OneRequest<Body> {
  const queries = useQueryClient();
  const { data: known } = useQuery(me);
  const nameFor = ({ user, active_organization_id }: Me, body: Body) =>
    nameOf([user.id, active_organization_id, act, body]);
  return {
    send: async (body, request, terms) => {
      const name = nameFor(await queries.query({ ...me, staleTime: 'static' }), body);
      return sendOnce(name, (key, sent) => request({ 'Idempotency-Key': key }, sent), terms);
    },
    isUnanswered: (body) => known !== undefined && (keptKey(nameFor(known, body))?.isUnanswered ?? false),
  };
}
