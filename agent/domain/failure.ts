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

/** The failure of a command, with a message for the renter. */
export class Failure extends CodedError<FailureCode> {}

/** Returns the key by which a log groups an error: `Docker` if Docker is down, which affects all instances at once; otherwise `own`. */
export function troubleOf(error: unknown, own: string): string {
  return isDockerAway(error) ? 'Docker' : own;
}

/** Tells whether the error, or its cause, is that Docker is down or does not answer in time. */
export function isDockerAway(error: unknown): boolean {
  if (error instanceof Failure) return ['DOCKER_UNREACHABLE', 'DOCKER_TIMEOUT'].includes(error.code);
  return error instanceof CodedError && error.cause !== undefined && isDockerAway(error.cause);
}
