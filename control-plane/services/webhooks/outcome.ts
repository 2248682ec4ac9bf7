import { hasFailedTooLong, pauseMs, retryDelayMs, type DeliveryError } from '../../domain/webhook.js';
import type { Row } from '../../store/schema.js';
import { rowById, updateRows } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import { disableEndpoint } from './disable.js';
import { reschedule } from './schedule.js';

/** What an attempt has led to. `status` and `answer` are null where there was none. */
export interface Outcome {
  /** Null: it was delivered. */
  error: DeliveryError | null;
  status: number | null;
  answer: string | null;
  /** For how many milliseconds the receiver has asked not to be sent anything. */
  askedMs: number;
}

/** An endpoint that answers this wants nothing any more. */
const GONE = 410;

/**
 * Records the result of an attempt: the delivery has arrived, is tried again later, or has failed. Switches the endpoint off if it has
 * answered 410, or has only failed for days and `isClockTrusted`. A delivery or endpoint that was deleted meanwhile is left out, and so is
 * a delivery that was asked for again meanwhile: it has other attempts.
 */
export function recordOutcome(
  tx: Tx,
  claimed: Pick<Row<'webhook_deliveries'>, 'id' | 'attempts'>,
  outcome: Outcome,
  isClockTrusted: boolean,
): void {
  const delivery = tx.get(rowById('webhook_deliveries', claimed.id));
  if (delivery?.attempts !== claimed.attempts) return;
  const endpoint = tx.get(rowById('webhook_endpoints', delivery.endpoint_id));
  if (!endpoint) return;
  const seen = { last_status: outcome.status, last_error: outcome.error, last_answer: outcome.answer };
  if (outcome.error === null) return recordSuccess(tx, delivery, seen);
  // It was switched off meanwhile.
  if (delivery.state !== 'pending') return;
  const isGone = outcome.status === GONE;
  const delay = isGone || delivery.kind === 'test' ? undefined : retryDelayMs(delivery.attempts, outcome.askedMs);
  const next =
    delay === undefined ? { state: 'failed' as const, finished_at: tx.now } : { next_attempt_at: tx.now + delay };
  tx.run(updateRows('webhook_deliveries', { ...seen, ...next }, { id: delivery.id }));
  tx.count({ what: 'webhook', outcome: delay === undefined ? 'failed' : 'retried' });
  if (isGone) disableEndpoint(tx, endpoint, 'gone');
  else recordFailure(tx, endpoint, delivery, outcome.askedMs, isClockTrusted);
}

function recordSuccess(
  tx: Tx,
  { id, endpoint_id }: Row<'webhook_deliveries'>,
  seen: Partial<Row<'webhook_deliveries'>>,
): void {
  tx.run(updateRows('webhook_deliveries', { ...seen, state: 'delivered', finished_at: tx.now }, { id }));
  tx.run(
    updateRows('webhook_endpoints', { failing_since: null, failures: 0, paused_until: null }, { id: endpoint_id }),
  );
  tx.count({ what: 'webhook', outcome: 'delivered' });
  reschedule(tx, endpoint_id);
}

/** A test says nothing about how events arrive, so it neither pauses an endpoint nor switches it off. */
function recordFailure(
  tx: Tx,
  endpoint: Row<'webhook_endpoints'>,
  { kind, attempts }: Row<'webhook_deliveries'>,
  askedMs: number,
  isClockTrusted: boolean,
): void {
  const { id, failing_since } = endpoint;
  if (kind === 'test') return reschedule(tx, id);
  const since = failing_since ?? tx.now;
  if (isClockTrusted && hasFailedTooLong(tx.now, since, attempts)) return disableEndpoint(tx, endpoint, 'failing');
  const failures = endpoint.failures + 1;
  const paused = { failing_since: since, failures, paused_until: tx.now + pauseMs(failures, askedMs) };
  tx.run(updateRows('webhook_endpoints', paused, { id }));
  reschedule(tx, id);
}

/** Takes back a claim whose attempt was broken off by this control plane: it counts as none, and the delivery is due at once. */
export function releaseClaim(tx: Tx, { id, endpoint_id, attempts }: Row<'webhook_deliveries'>): void {
  const again = { attempts: attempts - 1, next_attempt_at: tx.now };
  tx.run(updateRows('webhook_deliveries', again, { id, state: 'pending' }));
  reschedule(tx, endpoint_id);
}
