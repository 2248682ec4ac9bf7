import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { Refusal } from '../domain/refusal.js';

/** The most large bodies that are in memory at once, in total and of one caller. */
const AT_ONCE = 16;
const OF_ONE_CALLER = 4;

/**
 * Bounds the memory of request bodies that are longer than `bytes`. Refuses one too many with UNAVAILABLE before it is read. Few
 * routes accept such bodies, and few deploys are that long.
 */
export function boundLargeBodies(app: FastifyInstance, bytes: number): void {
  const held = new Map<string, number>();
  const hold = (request: FastifyRequest, reply: FastifyReply): Refusal | undefined => {
    if (!isLarge(request, bytes)) return undefined;
    const caller = callerOf(request);
    const own = held.get(caller) ?? 0;
    const all = [...held.values()].reduce((sum, count) => sum + count, 0);
    if (own >= OF_ONE_CALLER || all >= AT_ONCE)
      return new Refusal('UNAVAILABLE', 'too many requests with large bodies at this moment; try again shortly');
    held.set(caller, own + 1);
    reply.raw.once('close', () => {
      const left = (held.get(caller) ?? 1) - 1;
      if (left === 0) held.delete(caller);
      else held.set(caller, left);
    });
    return undefined;
  };
  app.addHook('onRoute', (route) => {
    // If the route accepts at most `bytes`, a longer body is refused anyway.
    if ((route.bodyLimit ?? 0) <= bytes) return;
    const before = [route.preParsing ?? []].flat();
    route.preParsing = [...before, (request, reply, _payload, done) => done(hold(request, reply))];
  });
}

function isLarge({ headers }: FastifyRequest, bytes: number): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > bytes;
}

function callerOf({ caller }: FastifyRequest): string {
  if (!caller) return '';
  return caller.kind === 'no_organization' ? caller.userId : caller.organizationId;
}
