import type { WebhookEndpoint } from '../../data/api/models.js';
import { Marked } from '../../parts/values/status.js';
import { Ago } from '../../parts/values/time.js';

const REASONS: Readonly<Record<NonNullable<WebhookEndpoint['disabled_reason']>, string>> = {
  renter: 'switched off by a person',
  gone: 'it has answered 410 Gone',
  failing: 'it has only failed for five days',
  secret_lost: 'the operator has lost its secret: make a new one',
};

/** Whether an endpoint gets events, and since when it does not. */
export function EndpointState({ endpoint }: { endpoint: WebhookEndpoint }) {
  const { enabled, disabled_reason, disabled_at, failing_since } = endpoint;
  if (!enabled)
    return <Marked shape={disabled_reason === 'renter' ? 'ring' : 'square'}>off{since(disabled_at)}</Marked>;
  if (failing_since !== null) return <Marked shape="square">failing{since(failing_since)}</Marked>;
  return <Marked shape="dot">on</Marked>;
}

function since(at: string | null) {
  return at === null ? null : <span>since {<Ago at={at} />}</span>;
}

/** Why an endpoint is off; undefined: it is on. */
export function reasonOf({ disabled_reason }: WebhookEndpoint): string | undefined {
  return disabled_reason === null ? undefined : REASONS[disabled_reason];
}
