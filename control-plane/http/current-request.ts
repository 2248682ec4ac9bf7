import { AsyncLocalStorage } from 'node:async_hooks';
import type { FastifyInstance } from 'fastify';

const requests = new AsyncLocalStorage<string>();

/** Returns the id of the current request, or null outside of requests. */
export function currentRequest(): string | null {
  return requests.getStore() ?? null;
}

/** Runs work outside of the current request, so that log lines of deferred work do not carry its id. */
export function outsideRequests(run: () => void): void {
  requests.exit(run);
}

/** Makes `currentRequest` return the id of each request while it is handled. */
export function followRequests(app: FastifyInstance): void {
  app.addHook('onRequest', (request, _reply, done) => requests.run(request.id, done));
}
