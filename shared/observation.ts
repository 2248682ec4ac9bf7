import type { Observation } from './gen/gpurent/agent/v1/agent.js';

/** An observation that tells of nothing but a state, which is to be added. */
export const NOTHING: Omit<Observation, 'state'> = {
  runId: '',
  runningMs: 0,
  sshPort: 0,
  jupyterUrl: '',
  openUrl: '',
  image: '',
  exit: undefined,
  sshSilent: false,
};
