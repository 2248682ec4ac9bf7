import { createHash } from 'node:crypto';
import { Webhook } from 'standardwebhooks';
import { VERSION } from '../../../shared/version.js';

/**
 * Returns the body of a message with these lines, and its headers with a signature as the Standard Webhooks specification has it. The body
 * is a JSON array, because the libraries of that specification read the body as one JSON text once its signature is right. An id stands for
 * one body: an attempt that is repeated with the same lines has the same one. `now` is in milliseconds since 1970.
 */
export function auditMessage(
  lines: readonly string[],
  secret: string,
  now: number,
): { headers: Record<string, string>; body: string } {
  const body = `[${lines.join(',\n')}]\n`;
  const id = `audit_${createHash('sha256').update(body).digest('hex').slice(0, 32)}`;
  const headers = {
    'content-type': 'application/json',
    'user-agent': `gpurent/${VERSION}`,
    'webhook-id': id,
    'webhook-timestamp': String(Math.floor(now / 1000)),
    'webhook-signature': new Webhook(secret).sign(id, new Date(now), body),
  };
  return { headers, body };
}
