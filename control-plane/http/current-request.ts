import type { FastifyInstance } from 'fastify';

let current: string | null = null;

/** Returns the id of the request whose handler is running, or null: outside of handlers, and after the first `await` of one. */
export function currentRequest(): string | null {
  return current;
}

/**
 * Makes {@link currentRequest} return the id of a request while its handler runs. Use cases are synchronous, so a variable is enough;
 * an AsyncLocalStorage would cost every request 10 us and more.
 */
export function followRequests(app: FastifyInstance): void {
  app.addHook('onRoute', (route) => {
    const { handler } = route;
    route.handler = function (request, reply) {
      current = request.id;
      try {
        return handler.call(this, request, reply);
      } finally {
        current = null;
      }
    };
  });
}
