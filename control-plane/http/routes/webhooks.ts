import { Type } from 'typebox';
import type { PaymentWebhook } from '../../domain/payment.js';
import { receiveEvent } from '../../services/billing/payments.js';
import { PUBLIC } from '../policy.js';
import { flag, text } from '../schemas.js';
import type { Routes } from './routes.js';

/** Receives what the payment provider sends. Its signature says that it comes from there. */
export const webhookRoutes =
  ({ title, signatureHeader }: PaymentWebhook): Routes =>
  (app, platform) => {
    // A signature is over the very bytes.
    app.removeAllContentTypeParsers();
    app.addContentTypeParser('application/json', { parseAs: 'string' }, (_request, body, done) => done(null, body));

    app.post(
      `/v1/webhooks/${platform.payments.name}`,
      {
        config: { policy: PUBLIC, rawBody: true, refusals: ['SIGNATURE_INVALID'] },
        schema: {
          operationId: `receive${title}Event`,
          summary: `Receive an event of ${title}, signed by it`,
          headers: Type.Object({
            [signatureHeader]: text(`How ${title} has signed the event`, { maxLength: 1_024, default: '' }),
          }),
          response: { 200: Type.Object({ received: flag('True: the event was taken') }) },
        },
      },
      (request) => {
        const body = typeof request.body === 'string' ? request.body : '';
        receiveEvent(platform, body, String(request.headers[signatureHeader]));
        return { received: true };
      },
    );
  };
