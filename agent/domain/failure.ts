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
