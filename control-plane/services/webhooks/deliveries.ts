import type { SessionCaller } from '../../domain/caller.js';
import { Refusal, invalidField } from '../../domain/refusal.js';
import { TEST_TYPE, type DeliveryState } from '../../domain/webhook.js';
import type { Row } from '../../store/schema.js';
import { compileOnce, query, rowById, sql, updateRows } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import { eventsExpired, expiredTo, newestNumber, numberOf } from '../events/read.js';
import { pageOf, type Page, type PageRequest } from '../system/pages.js';
import type { Core } from '../system/platform.js';
import { eventOf } from './claim.js';
import { ownEndpoint, recordWebhookAct, requireEnabled } from './endpoints.js';
import { trimLog } from './fan-out.js';
import { MOST_PENDING, countPending, reschedule } from './schedule.js';
import type { HasChangedStreams } from './streams.js';

export type Delivery = Row<'webhook_deliveries'>;

/** Most events that one replay goes back. */
export const MOST_REPLAYED = 10_000;
/** Before every other delivery that is due. */
const AT_ONCE = 0;

/** Lists the deliveries of an endpoint, newest first. Refuses an unknown or foreign id with WEBHOOK_ENDPOINT_NOT_FOUND. */
export function listDeliveries(
  core: Core,
  caller: SessionCaller,
  endpointId: string,
  { state, ...request }: PageRequest & { state?: DeliveryState },
): Page<Delivery> {
  return core.store.transact((tx) => {
    ownEndpoint(tx, caller, endpointId);
    const its = query.selectFrom('webhook_deliveries').selectAll().where('endpoint_id', '=', endpointId);
    return pageOf(tx, state === undefined ? its : its.where('state', '=', state), request, {
      by: { created_at: 'desc', id: 'desc' },
      keyOf: ({ created_at, id }) => [created_at, id],
    });
  });
}

/**
 * Sends a message of the type `webhook.test`, once. Refuses an unknown or foreign endpoint (WEBHOOK_ENDPOINT_NOT_FOUND), one that is
 * switched off (WEBHOOK_DISABLED), and one with too many pending deliveries (LIMIT_REACHED).
 */
export function sendTest(core: Core, caller: SessionCaller, endpointId: string): Delivery {
  return core.store.transact((tx) => {
    const endpoint = ownEndpoint(tx, caller, endpointId);
    requireEnabled(endpoint);
    requireRoom(tx, endpointId);
    const delivery: Delivery = {
      id: tx.id(),
      endpoint_id: endpointId,
      kind: 'test',
      epoch: null,
      number: null,
      type: TEST_TYPE,
      state: 'pending',
      attempts: 0,
      next_attempt_at: AT_ONCE,
      created_at: tx.now,
      finished_at: null,
      last_status: null,
      last_error: null,
      last_answer: null,
    };
    tx.run(query.insertInto('webhook_deliveries').values(delivery));
    trimLog(tx, endpointId);
    endPause(tx, endpointId);
    recordWebhookAct(tx, caller, 'webhook.test', endpointId);
    return delivery;
  });
}

/**
 * Sends a delivery again, with the same id and all of its attempts. Refuses an unknown or foreign one (WEBHOOK_DELIVERY_NOT_FOUND), one
 * whose event is no longer kept (EVENTS_EXPIRED), and otherwise like {@link sendTest}.
 */
export function replayDelivery(core: Core, caller: SessionCaller, id: string): Delivery {
  return core.store.transact((tx) => {
    const delivery = ownDelivery(tx, caller, id);
    requireEnabled(ownEndpoint(tx, caller, delivery.endpoint_id));
    if (delivery.kind !== 'test' && !eventOf(tx, caller.organizationId, delivery))
      throw eventsExpired(tx, caller.organizationId, 'the event of this delivery is no longer kept');
    if (delivery.state !== 'pending') {
      requireRoom(tx, delivery.endpoint_id);
      tx.run(updateRows('webhook_deliveries', { state: 'pending', attempts: 0, finished_at: null }, { id }));
    }
    tx.run(updateRows('webhook_deliveries', { next_attempt_at: AT_ONCE }, { id }));
    endPause(tx, delivery.endpoint_id);
    recordWebhookAct(tx, caller, 'webhook.replay', delivery.endpoint_id);
    return ownDelivery(tx, caller, id);
  });
}

/**
 * Delivers every event again that matches the endpoint's filters: those after an event, or since a time (milliseconds since 1970).
 * Returns how many events are looked at. Refuses like {@link sendTest}, an id that is not kept (EVENTS_EXPIRED), and more than 10,000
 * events (VALIDATION_FAILED).
 */
export function replaySince(
  core: Core & HasChangedStreams,
  caller: SessionCaller,
  endpointId: string,
  from: { after: string } | { since: number },
): { events: number } {
  return core.store.transact((tx) => {
    const { organizationId } = caller;
    const endpoint = ownEndpoint(tx, caller, endpointId);
    requireEnabled(endpoint);
    const newest = newestNumber(tx, organizationId);
    const number =
      'after' in from ? numberOf(tx, organizationId, from.after) : lastBefore(tx, organizationId, from.since, newest);
    if (number === undefined || newest - number > MOST_REPLAYED) {
      const field = 'after' in from ? 'after_id' : 'since';
      throw invalidField(field, `is more than ${MOST_REPLAYED} events ago; begin later`);
    }
    const delivered_to = Math.min(number, endpoint.delivered_to);
    tx.run(
      updateRows('webhook_endpoints', { delivered_to, missed_to: expiredTo(tx, organizationId) }, { id: endpointId }),
    );
    endPause(tx, endpointId);
    recordWebhookAct(tx, caller, 'webhook.replay', endpointId);
    tx.afterCommit(() => core.changedStreams.note(organizationId));
    return { events: newest - number };
  });
}

/**
 * Returns the number of the last event before a time; undefined: it is further back than a replay goes. Reads a few events: their times
 * rise with their numbers.
 */
function lastBefore(tx: Tx, stream: string, since: number, newest: number): number | undefined {
  const lowest = Math.max(newest - MOST_REPLAYED, 0);
  let [before, after] = [lowest, newest + 1];
  while (after - before > 1) {
    const middle = Math.floor((before + after) / 2);
    const next = tx.get(firstFrom({ stream, number: middle }));
    if (!next || next.at >= since) after = middle;
    else before = next.number;
  }
  return before === lowest && isSince(tx, stream, lowest, since) ? undefined : before;
}

/** Tells whether the event with this number is not before a time either. */
function isSince(tx: Tx, stream: string, number: number, since: number): boolean {
  const event = number > 0 ? tx.get(firstFrom({ stream, number })) : undefined;
  return event?.number === number && event.at >= since;
}

const firstFrom = compileOnce(({ stream, number }: { stream: string; number: number }) =>
  query
    .selectFrom('events')
    .select(['number', 'at'])
    .where('stream', '=', stream)
    .where('number', '>=', number)
    .orderBy('number')
    .limit(sql.lit(1)),
);

function ownDelivery(tx: Tx, { organizationId }: SessionCaller, id: string): Delivery {
  const delivery = tx.get(rowById('webhook_deliveries', id));
  const owner = delivery && tx.get(rowById('webhook_endpoints', delivery.endpoint_id))?.organization_id;
  if (delivery && owner === organizationId) return delivery;
  const message = 'no webhook endpoint of this organization has a delivery with this id';
  throw new Refusal('WEBHOOK_DELIVERY_NOT_FOUND', message);
}

function requireRoom(tx: Tx, endpointId: string): void {
  if (countPending(tx, endpointId) < MOST_PENDING) return;
  const message = `${MOST_PENDING} deliveries of this endpoint are pending; wait until it has received some`;
  throw new Refusal('LIMIT_REACHED', message, { limit: MOST_PENDING });
}

/** What a person asks for does not wait until an endpoint that has failed is tried again. */
function endPause(tx: Tx, endpointId: string): void {
  tx.run(updateRows('webhook_endpoints', { paused_until: null }, { id: endpointId }));
  reschedule(tx, endpointId);
  tx.nudge('webhooks');
}
