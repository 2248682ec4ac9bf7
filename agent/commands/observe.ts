import { WorkloadState, type Observation } from '../../shared/gen/gpurent/agent/v1/agent.js';
import type { Runtime, Workload } from '../runtime/workload.js';
import type { RunAges } from './run-ages.js';

const LAST_LINES = 200;
/** Well below what a message may hold. */
const LAST_LINES_CHARS = 64 * 1024;

/** A workload as the control plane hears of it. */
export function observe(workload: Workload, ages: RunAges): Observation {
  const nothing = { runId: '', runningMs: 0, sshPort: 0, jupyterUrl: '', openUrl: '', exit: undefined };
  switch (workload.state) {
    case 'absent':
    case 'created':
      return { ...nothing, state: WorkloadState.WORKLOAD_STATE_ABSENT };
    case 'running':
      return {
        ...nothing,
        state: WorkloadState.WORKLOAD_STATE_RUNNING,
        runId: String(workload.startedAt),
        runningMs: ages.ageOf(workload),
        sshPort: workload.sshPort ?? 0,
      };
    case 'stopped': {
      const exit = {
        code: workload.exitCode,
        outOfMemory: workload.outOfMemory,
        ranMs: ages.lasted(workload, workload.finishedAt - workload.startedAt),
        lastLines: [],
      };
      return { ...nothing, state: WorkloadState.WORKLOAD_STATE_STOPPED, runId: String(workload.startedAt), exit };
    }
  }
}

/** The same with the last lines of a run that has ended. A log that cannot be read makes nothing else fail. */
export async function observeWithLog(
  { runtime, ages }: { runtime: Runtime; ages: RunAges },
  instanceId: string,
  workload: Workload,
): Promise<Observation> {
  const observation = observe(workload, ages);
  if (!observation.exit) return observation;
  const lines = await runtime.tail(instanceId, LAST_LINES).catch(() => []);
  return { ...observation, exit: { ...observation.exit, lastLines: newest(lines.map(({ text }) => text)) } };
}

function newest(lines: string[]): string[] {
  let chars = 0;
  const first = lines.findLastIndex((line) => (chars += line.length) > LAST_LINES_CHARS);
  return lines.slice(first + 1);
}
