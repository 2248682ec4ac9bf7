import { isIP } from 'node:net';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { App } from '../services/parts/parts.js';

type Store = App['store'];

let current: Pick<FastifyRequest, 'id' | 'ip'> | null = null;

/** Returns the id of the request whose handler is running, or null: outside of handlers, and after the first `await` of one. */
export function currentRequest(): string | null {
  return current?.id ?? null;
}

/** Returns the address that this request comes from, or null; also if a proxy names one that is none. */
export function currentAddress(): string | null {
  const address = current?.ip.replace(/^::ffff:(?=\d+\.)/i, '') ?? '';
  return isIP(address) === 0 ? null : address;
}

/**
 * Runs each handler with {@link currentRequest} returning its id, and its use cases as part of a group commit. Use cases are
 * synchronous, so a variable is enough; an AsyncLocalStorage would cost every request 10 us and more.
 */
export function runHandlers(app: FastifyInstance, store: Store): void {
  app.addHook('onRoute', (route) => {
    const { handler } = route;
    route.handler = function (request, reply) {
      current = request;
      try {
        return store.join(() => handler.call(this, request, reply));
      } finally {
        current = null;
      }
    };
  });
}
