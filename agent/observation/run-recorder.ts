import type { Clock } from '../../shared/clock.js';
import type { EndedRunEntry } from '../domain/ended-run.js';
import type { Runtime, Workload } from '../runtime/workload.js';
import type { Observer } from './observer.js';

/** The calls that bring workloads down. */
export type Remover = Pick<Runtime, 'find' | 'stop' | 'remove'>;

/** Stores ended runs. */
export interface RunJournal {
  noteEndedRun(run: EndedRunEntry): void;
}

/**
 * Brings workloads down and records how long each has run before it does. The control plane charges by these records, also
 * where
 * the instance was never shown as running. Nothing else in the agent stops or removes a workload.
 */
export class RunRecorder implements Remover {
  /** By instance: the `startedAt` of the run that is not recorded. */
  private readonly exempted = new Map<string, number>();

  constructor(
    private readonly remover: Remover,
    private readonly journal: RunJournal,
    private readonly observer: Observer,
    private readonly clock: Clock,
  ) {}

  find(instanceId: string): Promise<Workload> {
    return this.remover.find(instanceId);
  }

  async stop(instanceId: string): Promise<void> {
    this.note(instanceId, await this.remover.find(instanceId));
    await this.remover.stop(instanceId);
    this.note(instanceId, await this.remover.find(instanceId));
  }

  async remove(instanceId: string): Promise<void> {
    this.note(instanceId, await this.remover.find(instanceId));
    await this.remover.remove(instanceId);
    this.exempted.delete(instanceId);
  }

  /** Excludes a run from the records, so that it is never charged: its host could not be reached. */
  exempt({ instanceId, startedAt }: { instanceId: string; startedAt: number }): void {
    this.exempted.set(instanceId, startedAt);
  }

  /** Records the run of a workload that is down, or is about to be. */
  note(instanceId: string, workload: Workload): void {
    if (workload.state === 'absent') this.exempted.delete(instanceId);
    if (workload.state !== 'running' && workload.state !== 'stopped') return;
    const { startedAt } = workload;
    if (this.exempted.get(instanceId) === startedAt) return;
    const run = { instanceId, runId: String(startedAt) };
    if (workload.state === 'running') {
      const ended = { endedAt: this.clock.now(), endedMs: this.clock.monotonic() };
      this.journal.noteEndedRun({ ...run, ranMs: this.observer.ageOf(workload), ...ended });
    } else {
      const ranMs = this.observer.lasted(workload);
      const ended = { endedAt: workload.finishedAt, endedMs: this.observer.endOf(workload, ranMs) };
      this.journal.noteEndedRun({ ...run, ranMs, ...ended });
    }
  }
}
