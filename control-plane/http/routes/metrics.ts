import type { FastifyRequest } from 'fastify';
import { readOverview } from '../../services/oversight/counts.js';
import { Readiness } from '../../services/system/readiness.js';
import type { EventStreams } from '../events/event-streams.js';
import type { Metrics } from '../metrics/metrics.js';
import { PUBLIC, notFound } from '../access/policy.js';
import { text } from '../schema/schemas.js';
import type { Routes } from './routes.js';

/** Serves metrics to a Prometheus on this machine. Requests from elsewhere, or through a proxy, get 404. */
export const metricsRoutes =
  (metrics: Metrics, streams: EventStreams): Routes =>
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
          response: { 200: text('The metrics in the text format of Prometheus') },
        },
      },
      async (request, reply) => {
        if (!isFromHere(request)) throw notFound();
        void reply.type(metrics.contentType);
        const overview = readiness.look() === undefined ? readOverview(platform) : undefined;
        const [workers, { commits }] = [platform.workerRuns.list(), platform.store];
        return metrics.render(overview, { workers, commits, openStreams: streams.count });
      },
    );
  };

/** The headers that Prometheus, similar scrapers and ordinary clients send. Any other header could come from a proxy. */
const OF_SCRAPERS =
  /^(host|connection|keep-alive|user-agent|accept(-encoding|-language)?|authorization|cache-control|pragma|content-(length|type)|te|traceparent|tracestate|x-org-id|x-prometheus-scrape-timeout-seconds|sec-fetch-\w+)$/;
/** The `Host` of a request from this machine. A proxy sends its own name, or the name that the client requested. */
const OWN_NAME = /^(localhost|127(\.\d+){3}|\[::1\])(:\d+)?$/i;

/**
 * Tells whether the request comes from this machine and through no proxy. A proxy that adds no header either uses HTTP/1.0, as
 * nginx does by default, or keeps the `Host` that the client requested.
 */
function isFromHere({ socket, headers, raw }: FastifyRequest): boolean {
  const isPassedOn = !Object.keys(headers).every((name) => OF_SCRAPERS.test(name)) || raw.httpVersion === '1.0';
  const isLoopback = /^(::ffff:)?127\.|^::1$/.test(socket.remoteAddress ?? '');
  return isLoopback && !isPassedOn && OWN_NAME.test(headers.host ?? '');
}
