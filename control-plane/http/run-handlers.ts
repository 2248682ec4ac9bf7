import type { FastifyInstance } from 'fastify';
import type { Platform } from '../services/system/platform.js';

type Store = Platform['store'];

let current: string | null = null;

/** Returns the id of the request whose handler is running, or null: outside of handlers, and after the first `await` of one. */
export function currentRequest(): string | null {
  return current;
}

/**
 * Runs each handler with {@link currentRequest} returning its id, and its use cases as part of a group commit. Use cases are
 * synchronous, so a variable is enough; an AsyncLocalStorage would cost every request 10 us and more.
 */
export function runHandlers(app: FastifyInstance, store: Store): void {
  app.addHook('onRoute', (route) => {
    const { handler } = route;
    route.handler = function (request, reply) {
      current = request.id;
      try {
        return store.join(() => handler.call(this, request, reply));
      } finally {
        current = null;
      }
    };
  });
}
