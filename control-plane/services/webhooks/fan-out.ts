import { GAP_TYPE, isWanted } from '../../domain/webhook.js';
import type { Row } from '../../store/schema.js';
import { compileOnce, insertRow, query, sql, statement, updateRows } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import { MOST_EVENTS, eventsAfter, expiredTo } from '../events/read.js';
import { typesOf, type Endpoint } from './endpoints.js';
import { MOST_PENDING, countPending, reschedule } from './schedule.js';
import type { ChangedStreams } from './streams.js';

/** Most endpoints that one run looks at. */
const ENDPOINTS_A_RUN = 100;
/** A run that has read so many events ends: it takes some milliseconds by then. */
const EVENTS_A_RUN = 400;
/** The newest deliveries of an endpoint that its log keeps. Older ones that are pending stay. */
export const KEPT_OF_ENDPOINT = 2_000;

/**
 * Turns new events of the changed streams into deliveries, for a bounded number of events, and returns the number of deliveries. An
 * endpoint with many pending deliveries gets further ones when it has received some: until then its events wait in their stream.
 */
export function makeDeliveries(tx: Tx, streams: ChangedStreams): number {
  if (streams.isEmpty()) return 0;
  const endpoints = streams.take(tx);
  let [made, read] = [0, 0];
  for (const [index, endpoint] of endpoints.entries()) {
    const isOver = index >= ENDPOINTS_A_RUN || read >= EVENTS_A_RUN;
    const result = isOver ? undefined : makeFor(tx, endpoint);
    made += result?.made ?? 0;
    read += result?.read ?? 0;
    if (!result || result.read === MOST_EVENTS) streams.note(endpoint.organization_id);
  }
  if (!streams.isEmpty()) tx.nudge('webhooks');
  return made;
}

/** Returns how many events were read, and how many of them were turned into deliveries. */
function makeFor(tx: Tx, endpoint: Endpoint): { read: number; made: number } {
  if (countPending(tx, endpoint.id) >= MOST_PENDING) return { read: 0, made: 0 };
  noteMissed(tx, endpoint);
  const events = eventsAfter(tx, endpoint.organization_id, endpoint.delivered_to);
  const last = events.at(-1);
  if (!last) return { read: 0, made: 0 };
  const wanted = { types: typesOf(endpoint), instanceId: endpoint.instance_id };
  const matching = events.filter((event) => isWanted(event, wanted));
  for (const event of matching) deliver(tx, endpoint.id, event);
  tx.run(updateRows('webhook_endpoints', { delivered_to: last.number }, { id: endpoint.id }));
  if (matching.length > 0) {
    reschedule(tx, endpoint.id);
    trimLog(tx, endpoint.id);
  }
  return { read: events.length, made: matching.length };
}

/** Adds the delivery of an event, or makes it pending again: somebody replays it. */
function deliver(tx: Tx, endpointId: string, { epoch, number, type }: Row<'events'>): void {
  tx.run(pendingDelivery({ id: tx.id(), endpointId, epoch, number, type, now: tx.now }));
}

const pendingDelivery = compileOnce(
  (given: { id: string; endpointId: string; epoch: number; number: number; type: string; now: number }) =>
    statement(sql`
    INSERT INTO webhook_deliveries (id, endpoint_id, kind, epoch, number, type, state, attempts, next_attempt_at, created_at)
    VALUES (${given.id}, ${given.endpointId}, 'event', ${given.epoch}, ${given.number}, ${given.type}, 'pending', 0,
      ${given.now}, ${given.now})
    ON CONFLICT (endpoint_id, number) WHERE kind = 'event'
    DO UPDATE SET state = 'pending', attempts = 0, next_attempt_at = excluded.next_attempt_at, finished_at = NULL
    WHERE state <> 'pending'`),
);

/** Writes into the log that events have expired before they were turned into deliveries, once for each further loss. */
function noteMissed(tx: Tx, { id, organization_id, delivered_to, missed_to }: Endpoint): void {
  const expired = expiredTo(tx, organization_id);
  if (expired <= Math.max(delivered_to, missed_to)) return;
  const end = { state: 'failed', last_error: 'events_expired', finished_at: tx.now } as const;
  const event = { kind: 'gap', epoch: null, number: expired, type: GAP_TYPE } as const;
  const times = { attempts: 0, next_attempt_at: tx.now, created_at: tx.now };
  tx.run(insertRow('webhook_deliveries', { id: tx.id(), endpoint_id: id, ...event, ...end, ...times }));
  tx.run(updateRows('webhook_endpoints', { missed_to: expired }, { id }));
}

/** Deletes what is beyond the newest deliveries of an endpoint, except pending ones. */
export function trimLog(tx: Tx, endpointId: string): void {
  const last = tx.get(firstTooMany({ endpointId }));
  if (last) tx.run(surplus({ endpointId, ...last }));
}

const firstTooMany = compileOnce(({ endpointId }: { endpointId: string }) =>
  query
    .selectFrom('webhook_deliveries')
    .select(['created_at', 'id'])
    .where('endpoint_id', '=', endpointId)
    .orderBy('created_at', 'desc')
    .orderBy('id', 'desc')
    .offset(sql.lit(KEPT_OF_ENDPOINT))
    .limit(sql.lit(1)),
);

const surplus = compileOnce((first: { endpointId: string; created_at: number; id: string }) =>
  query
    .deleteFrom('webhook_deliveries')
    .where('endpoint_id', '=', first.endpointId)
    .where(sql<boolean>`(created_at, id) <= (${first.created_at}, ${first.id})`)
    .where('state', '<>', sql.lit('pending')),
);
