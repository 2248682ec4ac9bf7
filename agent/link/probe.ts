import { status, type ServiceError } from '@grpc/grpc-js';
import { withTimeout, type Clock } from '../../shared/clock.js';
import { Heartbeat } from '../../shared/gen/gpurent/agent/v1/agent.js';
import { dialer } from './dial.js';
import { linkFailureOf, type LinkFailure } from './failure.js';
import type { Identity } from './identity.js';

const PATIENCE_MS = 10_000;

/**
 * Checks whether the control plane accepts this host's identity; returns null if it does. Sends a heartbeat instead of a hello, so that
 * the host does not count as connected and its real stream is not fenced. The control plane authenticates the host before it refuses
 * that heartbeat.
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
