import { Type } from 'typebox';
import type { PaymentWebhook } from '../../domain/money/payment.js';
import { receiveEvent } from '../../services/billing/payments/payments.js';
import { PUBLIC } from '../access/policy.js';
import { readText } from '../schema/read-bodies.js';
import { flag, text } from '../schema/schemas.js';
import type { Routes } from './routes.js';

/** Receives the events of the payment provider. Their signature proves where they come from. */
export const webhookRoutes =
  ({ title, signatureHeader }: PaymentWebhook): Routes =>
  (app, platform) => {
    // The signature covers the exact bytes of the body.
    app.removeAllContentTypeParsers();
    app.addContentTypeParser('application/json', { parseAs: 'buffer' }, async (_request: unknown, body: Buffer) =>
      readText(body),
    );

    app.post(
      `/v1/webhooks/${platform.payments.name}`,
      {
        config: { policy: PUBLIC, rawBody: true, servedOnFullDisk: true, refusals: ['SIGNATURE_INVALID'] },
        schema: {
          operationId: `receive${title}Event`,
          summary: `Receive a signed event of ${title}`,
          headers: Type.Object({
            [signatureHeader]: text(`The signature of ${title} for the event`, { maxLength: 1_024, default: '' }),
          }),
          response: { 200: Type.Object({ received: flag('Always true: the event was accepted') }) },
        },
      },
      (request) => {
        const body = typeof request.body === 'string' ? request.body : '';
        receiveEvent(platform, body, String(request.headers[signatureHeader]));
        return { received: true };
      },
    );
  };
