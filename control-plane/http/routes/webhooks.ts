import { Type } from 'typebox';
import { receiveEvent } from '../../services/billing/payments.js';
import { PUBLIC } from '../policy.js';
import { flag, text } from '../schemas.js';
import type { Routes } from './routes.js';

/** What payment providers send. Each says by its signature who it is. */
export const webhookRoutes: Routes = (app, platform) => {
  // A signature is over the very bytes.
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('application/json', { parseAs: 'string' }, (_request, body, done) => done(null, body));

  app.post(
    '/v1/webhooks/stripe',
    {
      config: { policy: PUBLIC, rawBody: true, refusals: ['SIGNATURE_INVALID'] },
      schema: {
        operationId: 'receiveStripeEvent',
        summary: 'Receive an event of Stripe, signed by it',
        headers: Type.Object({
          'stripe-signature': text('How Stripe has signed the event', { maxLength: 1_024, default: '' }),
        }),
        response: { 200: Type.Object({ received: flag('True: the event was taken') }) },
      },
    },
    (request) => {
      const body = typeof request.body === 'string' ? request.body : '';
      receiveEvent(platform, body, request.headers['stripe-signature']);
      return { received: true };
    },
  );
};
