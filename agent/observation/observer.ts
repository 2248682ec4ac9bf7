import type { Clock } from '../../shared/clock.js';
import { WorkloadState, type Observation } from '../../shared/gen/gpurent/agent/v1/agent.js';
import { NOTHING } from '../../shared/observation.js';
import type { Runtime, Workload } from '../runtime/workload.js';
import { RunAges, type Run } from './run-ages.js';

const LAST_LINES = 200;
/** Well below what a message may hold. */
const LAST_LINES_CHARS = 64 * 1024;

/** Where a run of a workload has answered. */
export interface Links {
  jupyterUrl: string;
  openUrl: string;
}

/** Puts workloads as they are found into the words of the wire. */
export class Observer {
  private readonly ages: RunAges;
  private readonly links = new Map<string, { startedAt: number } & Links>();
  /** The run of an instance in which SSH has answered. */
  private readonly reached = new Map<string, number>();

  constructor(
    private readonly runtime: Runtime,
    clock: Clock,
  ) {
    this.ages = new RunAges(clock);
  }

  observe(workload: Workload): Observation {
    switch (workload.state) {
      case 'absent':
      case 'created':
        return { ...NOTHING, state: WorkloadState.WORKLOAD_STATE_ABSENT };
      case 'running': {
        const { startedAt, image, sshPort } = workload;
        const run = { runId: String(startedAt), runningMs: this.ageOf(workload) };
        const state = WorkloadState.WORKLOAD_STATE_RUNNING;
        const sshSilent = sshPort !== null && !this.wasReached(workload);
        return { ...NOTHING, state, ...run, ...this.linksOf(workload), image, sshPort: sshPort ?? 0, sshSilent };
      }
      case 'stopped': {
        const exit = {
          code: workload.exitCode,
          outOfMemory: workload.outOfMemory,
          ranMs: this.lasted(workload),
          lastLines: [],
        };
        const state = WorkloadState.WORKLOAD_STATE_STOPPED;
        return { ...NOTHING, state, runId: String(workload.startedAt), image: workload.image, exit };
      }
    }
  }

  /** The same with the last lines of a run that has ended. A log that cannot be read makes nothing else fail. */
  async observeWithLog(instanceId: string, workload: Workload): Promise<Observation> {
    const observation = this.observe(workload);
    if (!observation.exit) return observation;
    const lines = await this.runtime.tail(instanceId, LAST_LINES).catch(() => []);
    return { ...observation, exit: { ...observation.exit, lastLines: newest(lines.map(({ text }) => text)) } };
  }

  /** For how long a run has lasted, in whole milliseconds. */
  ageOf(run: Run): number {
    return this.ages.ageOf(run);
  }

  /** How long a run has lasted that is over, in whole milliseconds. */
  lasted(run: Run & { finishedAt: number }): number {
    return this.ages.lasted(run, run.finishedAt - run.startedAt);
  }

  /** SSH has answered in this run. */
  noteReached({ instanceId, startedAt }: Run): void {
    this.reached.set(instanceId, startedAt);
  }

  wasReached({ instanceId, startedAt }: Run): boolean {
    return this.reached.get(instanceId) === startedAt;
  }

  /** What has answered in the latest run of which that is known. */
  latestLinks(instanceId: string): Links {
    const { jupyterUrl = '', openUrl = '' } = this.links.get(instanceId) ?? {};
    return { jupyterUrl, openUrl };
  }

  /** What has answered in this run. */
  linksOf({ instanceId, startedAt }: Run): Links {
    const known = this.links.get(instanceId);
    if (known?.startedAt !== startedAt) return { jupyterUrl: '', openUrl: '' };
    return { jupyterUrl: known.jupyterUrl, openUrl: known.openUrl };
  }

  /** Something of this run has answered there. */
  noteLinks(run: Run, links: Partial<Links>): void {
    const { instanceId, startedAt } = run;
    this.links.set(instanceId, { startedAt, ...this.linksOf(run), ...links });
  }

  /** The workload is gone. */
  forget(instanceId: string): void {
    this.ages.forget(instanceId);
    this.links.delete(instanceId);
    this.reached.delete(instanceId);
  }
}

function newest(lines: string[]): string[] {
  let chars = 0;
  const first = lines.findLastIndex((line) => (chars += line.length) > LAST_LINES_CHARS);
  return lines.slice(first + 1);
}
