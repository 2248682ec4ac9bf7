import type { FastifyInstance, FastifyRequest } from 'fastify';
import { checkProofWithFactor } from '../../services/identity/sessions/fresh-proof.js';
import type { App } from '../../services/parts/parts.js';

declare module 'fastify' {
  interface FastifyContextConfig {
    /**
     * Whether users with a second factor need a fresh proof for this route, or for which bodies. Released clients call such routes, so
     * users without a factor need none; API keys cannot prove anything.
     */
    proof?: true | ((body: never) => boolean);
  }
}

/** Refuses with PROOF_REQUIRED, before its handler, a request to a dangerous route whose user has a second factor and no fresh proof. */
export function demandProofs(app: FastifyInstance, platform: App): void {
  app.addHook('onRoute', (route) => {
    const { proof } = route.config ?? {};
    if (!proof) return;
    const isDangerous = (request: FastifyRequest) => proof === true || proof(request.body as never);
    route.preHandler = [
      ...[route.preHandler ?? []].flat(),
      (request, _reply, done) => {
        try {
          if (isDangerous(request)) check(platform, request);
          done();
        } catch (error) {
          done(error as Error);
        }
      },
    ];
  });
}

function check(platform: App, { caller }: FastifyRequest): void {
  if (caller === undefined || caller.kind === 'api_key') return;
  platform.store.transact((tx) => checkProofWithFactor(tx, caller));
}
