import { Failure } from '../../../domain/failure.js';
import { unmetRequirement } from '../../../domain/nvidia-requirement.js';
import { reasonOf } from '../engine.js';

/** Says for renters why Docker has not started a container. */
export function startFailureOf(error: unknown): Failure {
  if (error instanceof Failure) return error;
  const reason = reasonOf(error);
  if (/port is already allocated|address already in use/i.test(reason))
    return new Failure('PORT_TAKEN', `a port of the workload is taken on the host: ${reason}`, { cause: error });
  const unmet = unmetRequirement(reason);
  const words = unmet ?? `the container could not be started: ${reason}`;
  return new Failure('CONTAINER_FAILED', words, { cause: error });
}
