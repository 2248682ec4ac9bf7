import {
  CommandOutcome,
  WorkloadState,
  type Command,
  type Observation,
} from '../../../shared/gen/gpurent/agent/v1/agent.js';
import type { Attempt, FakeWorkload, FakeWorkloads } from './workloads.js';

export type Hesitation = 'comes up' | 'fails' | 'waits for its image';

/** Carries out commands on fake workloads, at once or after a while. */
export class CommandRunner {
  /** What becomes of attempts from now on: they take their time first. */
  hesitation: Hesitation | undefined;
  private readonly attempts = new Map<string, Attempt>();

  constructor(
    private readonly workloads: FakeWorkloads,
    private readonly answer: (command: Command, outcome: CommandOutcome, observation: Observation | undefined) => void,
  ) {}

  /** Does what a command wants, or begins to. */
  obey(command: Command): void {
    const { commandId, instanceId, sequence, desired } = command;
    const begun = this.attempts.get(instanceId);
    if (begun?.command.commandId === commandId) return;
    const workload = this.workloads.get(instanceId) ?? { runId: '', startedAt: 0, isUp: false, ranMs: 0, sequence };
    const wasUp = workload.isUp;
    if (wasUp) workload.ranMs = this.workloads.ageOf(workload);
    workload.sequence = sequence;
    this.workloads.set(instanceId, workload);
    this.attempts.delete(instanceId);
    if (desired?.$case === 'running') {
      if (!wasUp && this.hesitation !== 'waits for its image') this.workloads.comeUp(workload);
      if (this.hesitation) {
        this.attempts.set(instanceId, { command, fails: this.hesitation !== 'comes up' });
        return this.answer(command, CommandOutcome.COMMAND_OUTCOME_ACCEPTED, undefined);
      }
    } else if (wasUp) this.workloads.goDown(instanceId, workload);
    this.done(command, workload);
  }

  /** Attempts that have had their time come to their end. */
  endAttempts(): void {
    for (const [id, { command, fails }] of this.attempts) {
      this.attempts.delete(id);
      const workload = this.workloads.get(id);
      if (!workload) continue;
      if (!fails) {
        this.done(command, workload);
        continue;
      }
      if (workload.isUp) this.workloads.goDown(id, workload);
      if (command.desired?.$case === 'running' && command.desired.value.mayCreate) this.workloads.delete(id);
      this.answer(command, CommandOutcome.COMMAND_OUTCOME_FAILED, undefined);
    }
  }

  private done(command: Command, workload: FakeWorkload): void {
    const { instanceId, desired } = command;
    const observation = this.workloads.observe(workload);
    if (desired?.$case === 'absent') {
      this.workloads.delete(instanceId);
      const { ranMs: runningMs } = workload;
      Object.assign(observation, { state: WorkloadState.WORKLOAD_STATE_ABSENT, exit: undefined, runningMs });
    }
    this.answer(command, CommandOutcome.COMMAND_OUTCOME_DONE, observation);
  }
}
