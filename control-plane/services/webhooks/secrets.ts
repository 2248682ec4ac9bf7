import { DAY_MS } from '../../../shared/time.js';
import { randomIds, type Ids } from '../../../shared/ids.js';
import type { Row } from '../../store/schema.js';
import { compileOnce, query } from '../../store/sql.js';
import type { Tx } from '../../store/store.js';
import type { Encryption } from '../secrets/encryption.js';
import { disableEndpoint } from './disable.js';

type Endpoint = Row<'webhook_endpoints'>;

const SECRET_BYTES = 32;
/** How long the previous secret signs beside a new one. */
const PREVIOUS_SECRET_MS = DAY_MS;

/** Makes a signing secret in the form of the Standard Webhooks specification: `whsec_` and base64. */
export function newSecret(ids: Pick<Ids, 'hex'>): string {
  return `whsec_${Buffer.from(ids.hex(SECRET_BYTES), 'hex').toString('base64')}`;
}

export function encryptSecret(encryption: Encryption, secret: string): Buffer {
  return encryption.encrypt('webhook.secret', secret);
}

/** Returns the columns of an endpoint with a new secret; the present one signs beside it for a day. */
export function rotated(encryption: Encryption, { secret_encrypted }: Endpoint, secret: string, now: number) {
  return {
    secret_encrypted: encryptSecret(encryption, secret),
    previous_secret_encrypted: secret_encrypted,
    previous_secret_until: now + PREVIOUS_SECRET_MS,
  };
}

/** Returns the secrets that sign now, the newest first. */
export function secretsOf(encryption: Encryption, endpoint: Endpoint, now: number): string[] {
  const { secret_encrypted, previous_secret_encrypted, previous_secret_until } = endpoint;
  const isPreviousValid = previous_secret_encrypted !== null && (previous_secret_until ?? 0) > now;
  const encrypted = [secret_encrypted, ...(isPreviousValid ? [previous_secret_encrypted] : [])];
  return encrypted.map((each) => encryption.decrypt('webhook.secret', each) as string);
}

/** Deletes previous secrets that sign no longer. Returns their number. */
export function purgePreviousSecrets(tx: Tx): number {
  return tx.run(withoutPrevious({ now: tx.now }));
}

const NO_PREVIOUS = { previous_secret_encrypted: null, previous_secret_until: null };

const withoutPrevious = compileOnce(({ now }: { now: number }) =>
  query.updateTable('webhook_endpoints').set(NO_PREVIOUS).where('previous_secret_until', '<=', now),
);

/**
 * Replaces every secret, because the key that encrypts them is lost, and switches the endpoints off: their receivers would refuse what
 * the new secrets sign. `encryption` has the new key.
 */
export function forgetWebhookSecrets(tx: Tx, encryption: Encryption): void {
  for (const endpoint of tx.all(query.selectFrom('webhook_endpoints').selectAll())) {
    const secret_encrypted = encryptSecret(encryption, newSecret(randomIds));
    tx.run(
      query
        .updateTable('webhook_endpoints')
        .set({ secret_encrypted, ...NO_PREVIOUS })
        .where('id', '=', endpoint.id),
    );
    if (endpoint.disabled_at === null) disableEndpoint(tx, endpoint, 'secret_lost');
  }
}
