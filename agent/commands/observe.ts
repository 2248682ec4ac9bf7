import { WorkloadState, type Observation } from '../../shared/gen/gpurent/agent/v1/agent.js';
import type { Runtime, Workload } from '../runtime/workload.js';

const LAST_LINES = 200;

/** A workload as the control plane hears of it; with its last lines when it has ended. */
export async function observe(runtime: Runtime, instanceId: string, workload: Workload): Promise<Observation> {
  const nothing = { runId: '', sshPort: 0, jupyterUrl: '', openUrl: '', exit: undefined };
  switch (workload.state) {
    case 'absent':
    case 'created':
      return { ...nothing, state: WorkloadState.WORKLOAD_STATE_ABSENT };
    case 'running':
      return {
        ...nothing,
        state: WorkloadState.WORKLOAD_STATE_RUNNING,
        runId: String(workload.startedAt),
        sshPort: workload.sshPort ?? 0,
      };
    case 'stopped': {
      const lines = await runtime.tail(instanceId, LAST_LINES);
      const exit = {
        code: workload.exitCode,
        outOfMemory: workload.outOfMemory,
        ranMs: Math.max(workload.finishedAt - workload.startedAt, 0),
        lastLines: lines.map(({ text }) => text),
      };
      return { ...nothing, state: WorkloadState.WORKLOAD_STATE_STOPPED, runId: String(workload.startedAt), exit };
    }
  }
}
