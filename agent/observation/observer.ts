import type { Clock } from '../../shared/clock.js';
import { WorkloadState, type Observation } from '../../shared/gen/gpurent/agent/v1/agent.js';
import { NOTHING } from '../../shared/observation.js';
import type { Runtime, Workload } from '../runtime/workload.js';
import { RunAges, type Run, type RunStarts } from './run-ages.js';

const LAST_LINES = 200;
/** Well below the size limit of a message. */
const LAST_LINES_CHARS = 64 * 1024;

/** URLs at which a run of a workload has answered; empty: none yet. */
export interface Links {
  jupyterUrl: string;
  openUrl: string;
}

/** Turns workloads into the observations that are sent to the control plane. */
export class Observer {
  private readonly ages: RunAges;
  private readonly links = new Map<string, { startedAt: number } & Links>();
  /** By instance: the `startedAt` of the run in which SSH has answered. */
  private readonly reached = new Map<string, number>();
  private readonly hostKeys = new Map<string, { startedAt: number; key: string }>();

  constructor(
    private readonly runtime: Runtime,
    clock: Clock,
    starts: RunStarts,
    dockerAheadMs?: () => number | undefined,
  ) {
    this.ages = new RunAges(clock, starts, dockerAheadMs);
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
        const ssh = { sshPort: sshPort ?? 0, sshSilent, sshHostKey: this.hostKeyOf(workload) };
        return { ...NOTHING, state, ...run, ...this.linksOf(workload), image, ...ssh };
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

  /** Observes a workload, with the last log lines of a run that has ended. A log that cannot be read is left out. */
  async observeWithLog(instanceId: string, workload: Workload): Promise<Observation> {
    const observation = this.observe(workload);
    if (!observation.exit) return observation;
    const lines = await this.runtime.tail(instanceId, LAST_LINES).catch(() => []);
    return { ...observation, exit: { ...observation.exit, lastLines: newest(lines.map(({ text }) => text)) } };
  }

  /** Returns how long a run has lasted so far, in whole milliseconds. */
  ageOf(run: Run): number {
    return this.ages.ageOf(run);
  }

  /** Returns how long an ended run has lasted, in whole milliseconds. */
  lasted(run: Run & { finishedAt: number }): number {
    return this.ages.lasted(run);
  }

  /** Records that a run is down: it has ended by now. */
  noteDown(run: Run): void {
    this.ages.noteDown(run);
  }

  /** Returns when an ended run that has lasted `ms` ended, in monotonic milliseconds; undefined: it began before this boot. */
  endOf(run: Run, ms: number): number | undefined {
    return this.ages.endOf(run, ms);
  }

  /** Records that the agent is about to start a workload. */
  startsNow(instanceId: string): void {
    this.ages.startsNow(instanceId);
  }

  /** Records that SSH has answered in this run. */
  noteReached({ instanceId, startedAt }: Run): void {
    this.reached.set(instanceId, startedAt);
  }

  wasReached({ instanceId, startedAt }: Run): boolean {
    return this.reached.get(instanceId) === startedAt;
  }

  /** Records the host key with which SSH has answered in this run. */
  noteHostKey({ instanceId, startedAt }: Run, key: string): void {
    this.hostKeys.set(instanceId, { startedAt, key });
  }

  /** Returns the host key of this run; empty: unknown. */
  hostKeyOf({ instanceId, startedAt }: Run): string {
    const known = this.hostKeys.get(instanceId);
    return known?.startedAt === startedAt ? known.key : '';
  }

  /** Returns the links of the latest run that has any. */
  latestLinks(instanceId: string): Links {
    const { jupyterUrl = '', openUrl = '' } = this.links.get(instanceId) ?? {};
    return { jupyterUrl, openUrl };
  }

  /** Returns the links of this run; empty strings where none has answered. */
  linksOf({ instanceId, startedAt }: Run): Links {
    const known = this.links.get(instanceId);
    if (known?.startedAt !== startedAt) return { jupyterUrl: '', openUrl: '' };
    return { jupyterUrl: known.jupyterUrl, openUrl: known.openUrl };
  }

  /** Adds links of this run that have answered. */
  noteLinks(run: Run, links: Partial<Links>): void {
    const { instanceId, startedAt } = run;
    this.links.set(instanceId, { startedAt, ...this.linksOf(run), ...links });
  }

  /** Forgets a workload that is gone. */
  forget(instanceId: string): void {
    this.ages.forget(instanceId);
    this.links.delete(instanceId);
    this.reached.delete(instanceId);
    this.hostKeys.delete(instanceId);
  }
}

function newest(lines: string[]): string[] {
  let chars = 0;
  const first = lines.findLastIndex((line) => (chars += line.length) > LAST_LINES_CHARS);
  return lines.slice(first + 1);
}
