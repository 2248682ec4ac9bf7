import type { FastifyRequest } from 'fastify';
import { readOverview } from '../../services/system/overview.js';
import { Readiness } from '../../services/system/readiness.js';
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
        const overview = readiness.look() === undefined ? readOverview(platform) : undefined;
        return metrics.render(overview, platform.workerRuns.list());
      },
    );
  };

/** What Prometheus, its kin and people's own clients send. Proxies add what they like: whatever else there is may be theirs. */
const OF_SCRAPERS =
  /^(host|connection|keep-alive|user-agent|accept(-encoding|-language)?|authorization|cache-control|pragma|content-(length|type)|te|traceparent|tracestate|x-org-id|x-prometheus-scrape-timeout-seconds|sec-fetch-\w+)$/;
/** By which names a caller on this machine asks for it; a proxy says its own, or that of what was asked for. */
const OWN_NAME = /^(localhost|127(\.\d+){3}|\[::1\])(:\d+)?$/i;

/**
 * Whether the request was made on this machine, and passed on by nobody: a proxy that adds nothing to what it passes on speaks
 * HTTP/1.0 as nginx does of itself, or keeps the name that was asked for.
 */
function isFromHere({ socket, headers, raw }: FastifyRequest): boolean {
  const isPassedOn = !Object.keys(headers).every((name) => OF_SCRAPERS.test(name)) || raw.httpVersion === '1.0';
  const isLoopback = /^(::ffff:)?127\.|^::1$/.test(socket.remoteAddress ?? '');
  return isLoopback && !isPassedOn && OWN_NAME.test(headers.host ?? '');
}
