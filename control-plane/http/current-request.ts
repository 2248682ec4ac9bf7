import { AsyncLocalStorage } from 'node:async_hooks';
import type { FastifyInstance } from 'fastify';

const requests = new AsyncLocalStorage<string>();

/** The id of the request that is being carried out; null outside of any. */
export function currentRequest(): string | null {
  return requests.getStore() ?? null;
}

/** Runs what nobody asked for: work that a request has put off is not the request's. */
export function outsideRequests(run: () => void): void {
  requests.exit(run);
}

/** From here on, what a request does knows which one it is. */
export function followRequests(app: FastifyInstance): void {
  app.addHook('onRequest', (request, _reply, done) => requests.run(request.id, done));
}
