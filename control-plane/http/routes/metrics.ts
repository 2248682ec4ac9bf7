import type { FastifyRequest } from 'fastify';
import { readOverview } from '../../services/overview.js';
import { Readiness } from '../../services/readiness.js';
import type { Metrics } from '../metrics.js';
import { PUBLIC, notFound } from '../policy.js';
import { text } from '../schemas.js';
import type { Routes } from './routes.js';

/** For a Prometheus on this machine; whoever comes through a proxy, or from elsewhere, finds nothing. */
export const metricsRoutes =
  (metrics: Metrics): Routes =>
  (app, platform) => {
    const readiness = new Readiness(platform);
    app.get(
      '/metrics',
      {
        config: { policy: PUBLIC, refusals: ['NOT_FOUND'] },
        schema: {
          operationId: 'getMetrics',
          summary: 'Get metrics for a Prometheus on the same machine',
          description: 'Requests from elsewhere, or through a proxy, get 404 `NOT_FOUND`.',
          produces: ['text/plain'],
          response: { 200: text('In the text format of Prometheus') },
        },
      },
      async (request, reply) => {
        if (!isFromHere(request)) throw notFound();
        void reply.type(metrics.contentType);
        return metrics.render(readiness.look() === undefined ? readOverview(platform) : undefined);
      },
    );
  };

function isFromHere({ socket, headers }: FastifyRequest): boolean {
  const isForwarded = headers['x-forwarded-for'] !== undefined || headers['forwarded'] !== undefined;
  return !isForwarded && /^(::ffff:)?127\.|^::1$/.test(socket.remoteAddress ?? '');
}
