import { status, type ServiceError } from '@grpc/grpc-js';
import { withTimeout, type Clock } from '../../shared/clock.js';
import { Heartbeat } from '../../shared/gen/gpurent/agent/v1/agent.js';
import { dialer } from './dial.js';
import { linkFailureOf, type LinkFailure } from './failure.js';
import type { Identity } from './identity.js';

const PATIENCE_MS = 10_000;

/**
 * Whether the control plane takes this host for the one that it says it is; null: it does. No hello is said, so the host is not taken
 * for connected, and no stream of it is fenced: what comes instead is refused only after the host was let in.
 */
export async function probe(identity: Identity, clock: Clock): Promise<LinkFailure | null> {
  const stream = dialer(() => identity)();
  const answer = new Promise<LinkFailure | null>((resolve) => {
    stream.on('error', (error: ServiceError) =>
      resolve(error.code === status.FAILED_PRECONDITION ? null : linkFailureOf(error)),
    );
    stream.on('end', () => resolve({ kind: 'other', reason: 'the control plane has ended the stream' }));
    stream.on('data', () => resolve(null));
  });
  stream.write({ message: { $case: 'heartbeat', value: Heartbeat.create() } });
  const silent = { kind: 'other' as const, reason: 'the control plane did not answer' };
  try {
    return await withTimeout(clock, PATIENCE_MS, answer, () => silent);
  } finally {
    stream.cancel();
  }
}
