import { CodedError } from '../../shared/coded-error.js';

export type FailureCode =
  | 'DOCKER_UNREACHABLE'
  | 'DOCKER_TIMEOUT'
  | 'GPUS_UNAVAILABLE'
  | 'IMAGE_UNAVAILABLE'
  | 'IMAGE_TOO_SLOW'
  | 'NO_FREE_PORT'
  | 'PORT_TAKEN'
  | 'CONTAINER_FAILED'
  | 'WORKLOAD_GONE'
  | 'AGENT_CRASHED'
  | 'HOST_UNREACHABLE'
  | 'JOURNAL_UNWRITABLE'
  | 'SUPERSEDED';

/** Why a command could not be done, in words for the renter. */
export class Failure extends CodedError<FailureCode> {}

/** Whose trouble an error is, of which every instance has its share at the same time; otherwise `own`. */
export function troubleOf(error: unknown, own: string): string {
  return isDockerAway(error) ? 'Docker' : own;
}

/** Whether that is the error, or has caused it: Docker is down, or does not answer in time. */
export function isDockerAway(error: unknown): boolean {
  if (error instanceof Failure) return ['DOCKER_UNREACHABLE', 'DOCKER_TIMEOUT'].includes(error.code);
  return error instanceof CodedError && error.cause !== undefined && isDockerAway(error.cause);
}
