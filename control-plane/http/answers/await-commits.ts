import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { App } from '../../services/parts/parts.js';
import { unavailableBody } from '../errors/errors.js';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Set if the answer depends on nothing that is stored: it waits for no commit. */
    readsNothing?: true;
  }
}

/**
 * Sends an answer once everything is durable that it may tell of: what its handler has written, and what it has read of others that are
 * not committed yet. If that is lost, the answer is UNAVAILABLE, whatever it was.
 */
export function awaitCommits(app: FastifyInstance, store: App['store']): void {
  app.addHook('onSend', (request, reply, payload, done) => {
    if (request.routeOptions.config.readsNothing) return done(null, payload);
    store.whenDurable(
      () => done(null, payload),
      (error) => {
        request.log.error({ err: error }, error.message);
        done(null, replace(request, reply));
      },
    );
  });
}

function replace(request: FastifyRequest, reply: FastifyReply): string {
  for (const name of ['etag', 'content-length', 'idempotent-replayed', 'set-cookie', 'location'])
    void reply.removeHeader(name);
  return unavailableBody(request, reply);
}
