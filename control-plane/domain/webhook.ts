import { CodedError } from '../../shared/coded-error.js';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../shared/time.js';

/** The type of the message of a test delivery. No stream has such an event. */
export const TEST_TYPE = 'webhook.test';

/** What the log shows for events that had expired before they were turned into deliveries. */
export const GAP_TYPE = 'webhook.gap';

/** `gap`: events had expired before they were turned into deliveries; nothing is sent. */
export type DeliveryKind = 'event' | 'test' | 'gap';
export const DELIVERY_STATES = ['pending', 'delivered', 'failed'] as const;
export type DeliveryState = (typeof DELIVERY_STATES)[number];
/** `gone`: it has answered 410. `failing`: it has only failed for days. `secret_lost`: the key of the database was lost. */
export const DISABLED_REASONS = ['renter', 'gone', 'failing', 'secret_lost'] as const;
export type DisabledReason = (typeof DISABLED_REASONS)[number];

/** Why an attempt has failed, or why none was made. */
export const DELIVERY_ERRORS = [
  'bad_answer',
  'certificate',
  'disabled',
  'events_expired',
  'forbidden_address',
  'internal',
  'redirected',
  'status',
  'timed_out',
  'unreachable',
  'unresolved',
] as const;
export type DeliveryError = (typeof DELIVERY_ERRORS)[number];

/** The longest time for one attempt: resolving the name, connecting, sending and reading the answer. */
export const ATTEMPT_MS = 15_000;
/** Most bytes of an answer that are read. */
export const MOST_ANSWER_BYTES = 16 * 1024;
/** An endpoint that has only failed for this long is switched off. */
const MOST_FAILING_MS = 5 * DAY_MS;
/** The waits between the attempts of one delivery: together three days. */
const DELAYS_MS = [
  5_000,
  5 * MINUTE_MS,
  30 * MINUTE_MS,
  2 * HOUR_MS,
  5 * HOUR_MS,
  10 * HOUR_MS,
  14 * HOUR_MS,
  20 * HOUR_MS,
  24 * HOUR_MS,
];
/** How long an endpoint gets nothing after it has failed once, twice and so on. */
const PAUSES_MS = [5_000, 30_000, 2 * MINUTE_MS, 5 * MINUTE_MS];

/** With these statuses a receiver can say in `Retry-After` when it wants to be asked again. */
const REFUSED_FOR_NOW = [429, 503];
/** Longer waits than this are cut: an endpoint that is never asked again is never switched off either. */
const LONGEST_ASKED_MS = DAY_MS;

/**
 * Returns the milliseconds from the failure of this attempt (1: the first) to the next one, at least those that the receiver has asked
 * for; undefined: it was the last.
 */
export function retryDelayMs(attempt: number, askedMs: number): number | undefined {
  const delay = DELAYS_MS[attempt - 1];
  return delay === undefined ? undefined : Math.max(delay, askedMs);
}

/** Returns for how many milliseconds an endpoint gets nothing after this many failures without a success: at least what it has asked for. */
export function pauseMs(failures: number, askedMs: number): number {
  return Math.max(PAUSES_MS[Math.min(failures, PAUSES_MS.length) - 1] ?? 0, askedMs);
}

/**
 * Returns the milliseconds for which an answer asks not to be sent anything, at most a day; 0: it does not. `Retry-After` is a number of
 * seconds or a date (RFC 9110, 10.2.3); `now` is in milliseconds since 1970.
 */
export function askedWaitMs({ status, retryAfter = '' }: WebhookAnswer, now: number): number {
  if (!REFUSED_FOR_NOW.includes(status)) return 0;
  const ms = /^\d+$/.test(retryAfter) ? Number(retryAfter) * 1_000 : Date.parse(retryAfter) - now;
  return ms > 0 ? Math.min(ms, LONGEST_ASKED_MS) : 0;
}

/**
 * Tells whether an endpoint has failed for so long that it is switched off. One failed attempt of a delivery is not enough: the failures
 * before it can be older than a repair of the endpoint.
 */
export function hasFailedTooLong(now: number, failingSince: number, attempts: number): boolean {
  return now - failingSince >= MOST_FAILING_MS && attempts > 1;
}

/** Tells whether an endpoint wants an event. An empty filter (null) wants everything. */
export function isWanted(
  event: { type: string; instance_id: string | null },
  wanted: { types: readonly string[] | null; instanceId: string | null },
): boolean {
  if (wanted.types !== null && !wanted.types.includes(event.type)) return false;
  return wanted.instanceId === null || wanted.instanceId === event.instance_id;
}

export interface WebhookRequest {
  /** An https address, which is vetted by whoever connects. */
  url: string;
  headers: Readonly<Record<string, string>>;
  body: string;
  /** Ends the attempt. */
  signal: AbortSignal;
}

export interface WebhookAnswer {
  status: number;
  /** The beginning of the body: at most {@link MOST_ANSWER_BYTES} are read. */
  text: string;
  /** The header `Retry-After`. */
  retryAfter?: string | undefined;
}

/** Makes one attempt. Rejects with WebhookFailure, or with the reason of the signal, unless a status was received. */
export type PostWebhook = (request: WebhookRequest) => Promise<WebhookAnswer>;

/** An attempt that got no answer. */
export class WebhookFailure extends CodedError<DeliveryError> {
  constructor(code: DeliveryError, options?: ErrorOptions) {
    super(code, code, options);
  }
}
