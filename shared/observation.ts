import type { Observation } from './gen/gpurent/agent/v1/agent.js';

/** An empty observation, to which the caller adds a state. */
export const NOTHING: Omit<Observation, 'state'> = {
  runId: '',
  runningMs: 0,
  sshPort: 0,
  jupyterUrl: '',
  openUrl: '',
  image: '',
  exit: undefined,
  sshSilent: false,
  sshHostKey: '',
};
