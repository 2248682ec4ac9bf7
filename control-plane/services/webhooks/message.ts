import { Webhook } from 'standardwebhooks';
import { VERSION } from '../../../shared/version.js';
import type { Holder } from '../../domain/shared-total.js';
import { TEST_TYPE } from '../../domain/webhook.js';
import type { Row } from '../../store/schema.js';
import { envelopeOf, sourceOf, type Envelope } from '../events/envelope.js';
import type { Platform } from '../system/platform.js';
import { secretsOf } from './secrets.js';

/** What one attempt is made of. `event` is null for a test. */
export interface Claim {
  /** Whose it is. */
  holder: Holder;
  endpoint: Row<'webhook_endpoints'>;
  delivery: Row<'webhook_deliveries'>;
  event: Row<'events'> | null;
}

/** Returns the body of a delivery, and its headers with a signature by each secret that is valid now. */
export function signedMessage(
  platform: Pick<Platform, 'publicUrl' | 'encryption' | 'clock'>,
  { endpoint, delivery, event }: Omit<Claim, 'holder'>,
): { headers: Record<string, string>; body: string } {
  const now = platform.clock.now();
  const body = JSON.stringify(event ? envelopeOf(platform, event) : envelopeOfTest(platform, { endpoint, delivery }));
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

function envelopeOfTest(
  platform: Pick<Platform, 'publicUrl'>,
  { endpoint, delivery }: Pick<Claim, 'endpoint' | 'delivery'>,
): Envelope {
  return {
    specversion: '1.0',
    id: delivery.id,
    source: sourceOf(platform, endpoint.organization_id),
    type: TEST_TYPE,
    subject: `webhook-endpoints/${endpoint.id}`,
    time: new Date(delivery.created_at).toISOString(),
    data: {},
  };
}
