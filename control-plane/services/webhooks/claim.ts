import { MINUTE_MS } from '../../../shared/time.js';
import { compileOnce, query, rowById, sql, updateRows } from '../../store/sql.js';
import type { Row } from '../../store/schema.js';
import type { Tx } from '../../store/store.js';
import type { Holder } from '../../domain/shared-total.js';
import { holderOf } from '../organizations/holders.js';
import { findEvent } from '../events/read.js';
import type { Flights } from './flights.js';
import type { Claim } from './message.js';
import { reschedule } from './schedule.js';

/**
 * When a delivery is due again whose attempt has no result: a crash has come in between. Longer than an attempt can take.
 */
const LEASE_MS = MINUTE_MS;
/**
 * Endpoints that one run looks at. Those of organizations that have reached their bound are fewer (ten of each that has an attempt under
 * way), so that one that has not is always among them.
 */
const ENDPOINTS_A_RUN = 500;
/** More than an endpoint can have under way, so that one delivery that is not is among them. */
const DELIVERIES_AT_ONCE = 3;

type Due = Pick<Row<'webhook_endpoints'>, 'id' | 'organization_id' | 'failures'> & { holder: Holder };

/**
 * Claims deliveries that are due, as many as `flights` leaves room for, and adds them there. People with fewer attempts under way
 * come first, then endpoints that have waited for longer. A claimed delivery is due again after a minute, unless it has a result by then.
 */
export function claimDue(tx: Tx, flights: Flights): Claim[] {
  if (flights.isFull) return [];
  const due = withHolders(tx, tx.all(dueEndpoints({ now: tx.now })));
  const open = new Set(due);
  const claims: Claim[] = [];
  for (let next = nextOf(open, flights); next; next = nextOf(open, flights)) {
    const claim = claimOf(tx, next.id, flights);
    if (!claim) {
      open.delete(next);
      continue;
    }
    const { organization_id: organizationId, holder } = next;
    flights.add({ endpointId: next.id, organizationId, holder, deliveryId: claim.delivery.id });
    claims.push({ ...claim, holder });
  }
  const looked = new Set([
    ...claims.map(({ endpoint }) => endpoint.id),
    ...due.filter((one) => !open.has(one)).map(({ id }) => id),
  ]);
  for (const id of looked) reschedule(tx, id);
  return claims;
}

function nextOf(open: Iterable<Due>, flights: Flights): Due | undefined {
  let best: Due | undefined;
  for (const one of open) {
    if (best && flights.of(one.holder.person) >= flights.of(best.holder.person)) continue;
    if (flights.allows({ endpointId: one.id, holder: one.holder, failures: one.failures })) best = one;
  }
  return best;
}

/** Adds whose each endpoint is; an organization has several, and is looked up once. */
function withHolders(tx: Tx, endpoints: readonly Omit<Due, 'holder'>[]): Due[] {
  const known = new Map<string, Holder>();
  return endpoints.map((one) => {
    const holder = known.get(one.organization_id) ?? holderOf(tx, one.organization_id);
    known.set(one.organization_id, holder);
    return { ...one, holder };
  });
}

const dueEndpoints = compileOnce(({ now }: { now: number }) =>
  query
    .selectFrom('webhook_endpoints')
    .select(['id', 'organization_id', 'failures'])
    .where('next_attempt_at', '<=', now)
    .orderBy('next_attempt_at')
    .limit(sql.lit(ENDPOINTS_A_RUN)),
);

function claimOf(tx: Tx, endpointId: string, flights: Flights): Omit<Claim, 'holder'> | undefined {
  const endpoint = tx.get(rowById('webhook_endpoints', endpointId));
  if (!endpoint) return undefined;
  for (const delivery of tx.all(dueOf({ endpointId, now: tx.now }))) {
    if (flights.has(delivery.id)) continue;
    const event = eventOf(tx, endpoint.organization_id, delivery);
    if (event === null && delivery.kind === 'event') {
      const end = { state: 'failed', last_error: 'events_expired', finished_at: tx.now } as const;
      tx.run(updateRows('webhook_deliveries', end, { id: delivery.id }));
      continue;
    }
    const attempt = { attempts: delivery.attempts + 1, next_attempt_at: tx.now + LEASE_MS };
    tx.run(updateRows('webhook_deliveries', attempt, { id: delivery.id }));
    return { endpoint, event, delivery: { ...delivery, ...attempt } };
  }
  return undefined;
}

const dueOf = compileOnce(({ endpointId, now }: { endpointId: string; now: number }) =>
  query
    .selectFrom('webhook_deliveries')
    .selectAll()
    .where('endpoint_id', '=', endpointId)
    .where('state', '=', sql.lit('pending'))
    .where('next_attempt_at', '<=', now)
    .orderBy('next_attempt_at')
    .limit(sql.lit(DELIVERIES_AT_ONCE)),
);

/** Returns the event of a delivery; null: it has expired, or the delivery has none. */
export function eventOf(
  tx: Tx,
  stream: string,
  { epoch, number }: Pick<Row<'webhook_deliveries'>, 'epoch' | 'number'>,
): Row<'events'> | null {
  if (epoch === null || number === null) return null;
  return findEvent(tx, stream, { epoch, number }) ?? null;
}
