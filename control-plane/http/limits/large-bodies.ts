import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { Refusal } from '../../domain/refusal.js';
import { overShare, type Holder } from '../../domain/shared-total.js';
import { holderOf } from '../../services/organizations/holders.js';
import type { App } from '../../services/parts/parts.js';
import { clientNetwork } from '../access/client.js';

/** The most large bodies that are in memory at once, in total and of one person. */
const AT_ONCE = 16;
const OF_ONE_PERSON = 4;

interface LargeBody {
  holder: Holder;
  /** The connection on which it arrives. */
  raw: FastifyRequest['raw'];
}

/**
 * Bounds the memory of request bodies that are longer than `bytes`. Refuses one too many with UNAVAILABLE before it is read. Few
 * routes accept such bodies, and few deploys are that long. One of those that have never paid, as long as it arrives, gives way to
 * another person's if its own person has more: see {@link overShare}.
 */
export function boundLargeBodies(app: FastifyInstance, platform: App, bytes: number): void {
  const held = new Set<LargeBody>();
  const hold = (request: FastifyRequest, reply: FastifyReply): Refusal | undefined => {
    if (!isLarge(request, bytes)) return undefined;
    const body = { holder: holderOfRequest(platform, request), raw: request.raw };
    const losers = losersFor(held, body);
    if (losers.includes(body))
      return new Refusal('UNAVAILABLE', 'too many requests with large bodies at this moment; try again shortly');
    for (const loser of losers) {
      held.delete(loser);
      loser.raw.destroy();
    }
    held.add(body);
    reply.raw.once('close', () => held.delete(body));
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

/** Returns the bodies that go for another one: that one itself, if its person has enough, or as many as anybody. */
function losersFor(held: ReadonlySet<LargeBody>, newcomer: LargeBody): LargeBody[] {
  const own = [...held].filter(({ holder }) => holder.person === newcomer.holder.person);
  if (own.length >= OF_ONE_PERSON) return [newcomer];
  // The newcomer comes first: where all have as many, those that arrive already go on.
  return overShare([newcomer, ...held], {
    most: AT_ONCE,
    holderOf: ({ holder }) => holder,
    mayLose: (body) => body === newcomer || (!body.holder.hasPaid && !body.raw.complete),
  });
}

/** Returns whose something is that a request takes of a total which strangers share. */
export function holderOfRequest({ store }: App, request: FastifyRequest): Holder {
  const { caller } = request;
  const network = clientNetwork(request);
  if (caller && caller.kind !== 'no_organization')
    return store.transact((tx) => holderOf(tx, caller.organizationId, network));
  return { hasPaid: false, person: caller?.userId ?? '', network };
}
