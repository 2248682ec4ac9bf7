import { Webhook } from 'standardwebhooks';
import { VERSION } from '../../../shared/version.js';
import { TEST_TYPE } from '../../domain/webhook.js';
import type { Row } from '../../store/schema.js';
import { describeEvent, type EventDetails } from '../events/read.js';
import type { Platform } from '../system/platform.js';
import { secretsOf } from './secrets.js';

/** What one attempt is made of. `event` is null for a test. */
export interface Claim {
  endpoint: Row<'webhook_endpoints'>;
  delivery: Row<'webhook_deliveries'>;
  event: Row<'events'> | null;
}

/** Returns the body of a delivery, and its headers with a signature by each secret that is valid now. */
export function signedMessage(
  platform: Pick<Platform, 'publicUrl' | 'encryption' | 'clock'>,
  { endpoint, delivery, event }: Claim,
): { headers: Record<string, string>; body: string } {
  const now = platform.clock.now();
  const described = event ? describeEvent(platform, event) : describeTest(platform, { endpoint, delivery });
  const body = JSON.stringify({ specversion: '1.0', ...described, time: new Date(described.time).toISOString() });
  const at = new Date(now);
  const signatures = secretsOf(platform.encryption, endpoint, now).map((secret) =>
    new Webhook(secret).sign(delivery.id, at, body),
  );
  const headers = {
    'content-type': 'application/json',
    'user-agent': `gpurent/${VERSION}`,
    'webhook-id': delivery.id,
    'webhook-timestamp': String(Math.floor(now / 1000)),
    'webhook-signature': signatures.join(' '),
  };
  return { headers, body };
}

function describeTest(
  { publicUrl }: Pick<Platform, 'publicUrl'>,
  { endpoint, delivery }: Omit<Claim, 'event'>,
): Omit<EventDetails, 'type'> & { type: string } {
  return {
    id: delivery.id,
    source: `${publicUrl ?? ''}/v1/orgs/${endpoint.organization_id}`,
    type: TEST_TYPE,
    subject: `webhook-endpoints/${endpoint.id}`,
    time: delivery.created_at,
    data: {},
  };
}
