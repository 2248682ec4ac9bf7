/** The codes by which agents say why a command has failed. Agents are not trusted, so any other code counts as `other`. */
export const FAILURE_CODES = [
  'AGENT_CRASHED',
  'CONTAINER_FAILED',
  'DOCKER_TIMEOUT',
  'DOCKER_UNREACHABLE',
  'GPUS_UNAVAILABLE',
  'HOST_UNREACHABLE',
  'IMAGE_TOO_SLOW',
  'IMAGE_UNAVAILABLE',
  'JOURNAL_UNWRITABLE',
  'NO_FREE_PORT',
  'PORT_TAKEN',
  'SUPERSEDED',
  'WORKLOAD_GONE',
  'other',
] as const;
const KNOWN: ReadonlySet<string> = new Set(FAILURE_CODES);

/** Returns the code as metrics show it: one of {@link FAILURE_CODES}. */
export function knownFailure(code: string): string {
  return KNOWN.has(code) ? code : 'other';
}
