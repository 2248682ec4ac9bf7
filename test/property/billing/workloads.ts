import {
  WorkloadState,
  type Command,
  type EndedRun,
  type Gpu,
  type Observation,
} from '../../../shared/gen/gpurent/agent/v1/agent.js';
import { fakeGpuUuid } from '../../harness/fake-inventory.js';
import type { ManualClock } from '../../harness/manual-clock.js';

export interface FakeWorkload {
  runId: string;
  startedAt: number;
  isUp: boolean;
  ranMs: number;
  sequence: number;
}

/** A run that is over. */
interface FakeRun {
  runId: string;
  ranMs: number;
  /** In monotonic milliseconds. */
  endedAt: number;
}

export const NOTHING = {
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
/** A host tells of a run until it is acknowledged; this one, a few times more. */
const TOLD_RUNS = 4;
const GPUS = 4;

/** An attempt that has started its workload and has not answered yet. */
export interface Attempt {
  command: Command;
  fails: boolean;
}

/** What runs on a simulated host, and what has run there. */
export class FakeWorkloads extends Map<string, FakeWorkload> {
  /** What the host adds to every run that it tells of, in milliseconds. */
  exaggerationMs = 0;
  readonly gpus: Gpu[] = Array.from({ length: GPUS }, (_, index) => ({
    uuid: fakeGpuUuid(0, index),
    index,
    model: 'Fake GPU',
    memoryMb: 24_576,
    healthy: true,
    reason: '',
  }));
  private readonly ended = new Map<string, FakeRun[]>();
  private runs = 0;

  constructor(protected readonly clock: ManualClock) {
    super();
  }

  comeUp(workload: FakeWorkload): void {
    Object.assign(workload, { isUp: true, runId: String(++this.runs), startedAt: this.clock.monotonic() });
  }

  goDown(id: string, workload: FakeWorkload): void {
    Object.assign(workload, { isUp: false, ranMs: this.ageOf(workload) });
    const run = { runId: workload.runId, ranMs: workload.ranMs + this.exaggerationMs };
    const ended = [...(this.ended.get(id) ?? []), { ...run, endedAt: this.clock.monotonic() }];
    this.ended.set(id, ended.slice(-TOLD_RUNS));
  }

  ageOf({ startedAt }: FakeWorkload): number {
    return this.clock.monotonic() - startedAt;
  }

  observe(workload: FakeWorkload): Observation {
    const { runId, isUp, ranMs } = workload;
    const run = isUp
      ? { runId, runningMs: this.ageOf(workload) }
      : { runId, exit: { code: 0, outOfMemory: false, ranMs, lastLines: [] } };
    return { ...NOTHING, state: stateOf(workload), ...run };
  }

  endedRuns(id: string): EndedRun[] {
    const now = this.clock.monotonic();
    const ended = this.ended.get(id) ?? [];
    return ended.map(({ runId, ranMs, endedAt }) => ({ runId, ranMs, endedMsAgo: now - endedAt }));
  }

  /** What has ended has ended only now, for all that is told of it from now on. */
  backdate(id: string): void {
    for (const run of this.ended.get(id) ?? []) run.endedAt = this.clock.monotonic();
  }

  inventory() {
    return {
      name: 'host',
      region: 'test',
      publicAddress: '203.0.113.7',
      arch: 'x86_64',
      cpuModel: '',
      cpuCores: 8,
      memoryMb: 65_536,
      diskGb: 10_000,
      diskQuota: 'enforced',
      driverVersion: '',
      cudaVersion: '',
      vmCapable: false,
      gpuReleaseSupported: true,
      accessReplaceable: true,
      gpus: this.gpus,
    };
  }
}

export function stateOf({ isUp }: FakeWorkload): WorkloadState {
  return isUp ? WorkloadState.WORKLOAD_STATE_RUNNING : WorkloadState.WORKLOAD_STATE_STOPPED;
}
