import type { FastifyInstance, FastifyRequest } from 'fastify';
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
  app.addHook('preParsing', async (request, reply) => {
    if (!isLarge(request, bytes)) return;
    const caller = callerOf(request);
    const own = held.get(caller) ?? 0;
    const all = [...held.values()].reduce((sum, count) => sum + count, 0);
    if (own >= OF_ONE_CALLER || all >= AT_ONCE)
      throw new Refusal('UNAVAILABLE', 'too many requests with large bodies at this moment; try again shortly');
    held.set(caller, own + 1);
    reply.raw.once('close', () => {
      const left = (held.get(caller) ?? 1) - 1;
      if (left === 0) held.delete(caller);
      else held.set(caller, left);
    });
  });
}

/** Tells whether a body counts as large. If the route accepts at most `bytes`, a longer body is refused anyway. */
function isLarge({ headers, routeOptions }: FastifyRequest, bytes: number): boolean {
  if (routeOptions.bodyLimit <= bytes) return false;
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > bytes;
}

function callerOf({ caller }: FastifyRequest): string {
  if (!caller) return '';
  return caller.kind === 'no_organization' ? caller.userId : caller.organizationId;
}
