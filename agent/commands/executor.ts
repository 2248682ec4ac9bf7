import { messageOf } from '../../shared/coded-error.js';
import {
  CommandOutcome,
  type Command,
  type CommandResult,
  type SequenceFloor,
} from '../../shared/gen/gpurent/agent/v1/agent.js';
import { Failure } from '../domain/failure.js';
import type { Desired, Journal } from '../journal/journal.js';
import type { Outbox } from '../link/outbox.js';
import type { Workload } from '../runtime/workload.js';
import { Attempt } from './attempt.js';
import { retryWhileDockerIsDown, reconcile, rollBack, type Dependencies } from './reconcile.js';

interface Job {
  attempt: Attempt;
  /** The desired state of the instance before this command. */
  before: Desired | undefined;
}

/** The queue of one instance: one thing runs at a time, and at most one command waits. */
interface Lane {
  current: Job | undefined;
  next: Job | undefined;
  tail: Promise<void>;
}

/**
 * Carries out commands: each at most once, and the newest of an instance last, even if messages are lost, repeated or late. It
 * recognizes commands by their id and sequence.
 */
export class Executor {
  private readonly lanes = new Map<string, Lane>();
  private readonly floors = new Map<string, number>();
  private stopping = false;
  /** The queue of commands during which the agent has crashed. They run one after another, so that the next crash has one cause. */
  private suspects: Promise<unknown> = Promise.resolve();
  /** Called when a command has its final answer. */
  onFinished: (kind: string, outcome: string) => void = () => {};

  constructor(
    private readonly dependencies: Dependencies,
    private readonly journal: Journal,
    private readonly outbox: Outbox,
  ) {}

  receive(command: Command): void {
    if (this.stopping) return;
    const { commandId, instanceId, sequence } = command;
    const known = this.journal.command(commandId);
    if (known?.state === 'finished') return this.outbox.result(known.result);
    const lane = this.lanes.get(instanceId);
    if (idOf(lane?.current) === commandId || idOf(lane?.next) === commandId) return;
    const highest = Math.max(this.journal.instance(instanceId)?.sequence ?? 0, this.floors.get(instanceId) ?? 0);
    if (sequence < highest) return this.outbox.result(staleResult(command, highest));
    const before = this.journal.instance(instanceId)?.desired;
    // A `kept` command can be repeated, so the journal does not record it; nothing waits for it before it is sent again.
    if (isKept(command)) this.journal.raise(instanceId, sequence, 0);
    else this.journal.begin(command, desiredBy(command));
    this.enqueue({ attempt: this.attempt(command, known), before });
  }

  /** Applies a floor from the welcome: commands below it never run again, even if the host has lost its journal. */
  raiseFloor({ instanceId, sequence, reportNumber, running, commandOpen }: SequenceFloor): void {
    this.floors.set(instanceId, sequence);
    this.journal.raise(instanceId, sequence, reportNumber);
    const isUnsure = this.journal.instance(instanceId)?.desired === 'unsure';
    const isForgotten = !commandOpen && !this.isBusy(instanceId) && this.journal.isUnfinished(instanceId);
    if (isUnsure || isForgotten) this.journal.abandon(instanceId, running ? 'running' : 'stopped');
  }

  /** Accepts no more commands and drops waiting ones. The control plane sends interrupted commands again. */
  async stop(): Promise<void> {
    this.stopping = true;
    this.journal.endAttempt();
    for (const { current } of this.lanes.values())
      current?.attempt.abort(new Failure('SUPERSEDED', 'the agent is stopping'));
    await this.idle();
  }

  /** Tells whether a command of the instance is waiting or running. */
  isBusy(instanceId: string): boolean {
    const lane = this.lanes.get(instanceId);
    return lane?.current !== undefined || lane?.next !== undefined;
  }

  /** Runs `work` in the lane of the instance, so that no command of it runs at the same time. */
  exclusively(instanceId: string, work: () => Promise<void>): Promise<void> {
    return this.append(instanceId, work);
  }

  /** Resolves when no lane has work. */
  async idle(): Promise<void> {
    await Promise.all([...this.lanes.values()].map(({ tail }) => tail));
  }

  private attempt(command: Command, earlier: { runBefore: number | null; crashes: number } | undefined): Attempt {
    const { commandId, instanceId } = command;
    const isStopOut = () => this.journal.isStopCutShort(instanceId);
    return new Attempt(command, earlier, isStopOut, {
      onAccept: () => this.outbox.result(resultOf(command, CommandOutcome.COMMAND_OUTCOME_ACCEPTED)),
      onStart: (runBefore) => this.journal.noteRun(commandId, runBefore),
      onProgress: (kind, message, { gpusFree = false, pulled } = {}) =>
        this.outbox.progress({ instanceId, kind, message, gpusFree, pulled }),
    });
  }

  private enqueue(job: Job): void {
    const { command } = job.attempt;
    const lane = this.lane(command.instanceId);
    if (lane.next) this.answer(lane.next, staleResult(lane.next.attempt.command, command.sequence));
    lane.next = job;
    const current = lane.current?.attempt;
    if (current && !isDestroy(current.command)) {
      current.abort(new Failure('SUPERSEDED', 'a newer command of the instance has arrived'));
    }
    void this.append(command.instanceId, async () => {
      // A newer command has replaced this one while it waited.
      if (lane.next !== job || this.stopping) return;
      lane.next = undefined;
      lane.current = job;
      try {
        await (job.attempt.crashes > 0 ? this.alone(job) : this.run(job));
      } finally {
        lane.current = undefined;
      }
    });
  }

  private lane(instanceId: string): Lane {
    let lane = this.lanes.get(instanceId);
    if (!lane) {
      lane = { current: undefined, next: undefined, tail: Promise.resolve() };
      this.lanes.set(instanceId, lane);
    }
    return lane;
  }

  private append(instanceId: string, work: () => Promise<void>): Promise<void> {
    const lane = this.lane(instanceId);
    const done = lane.tail.then(work).catch((error: unknown) => {
      this.dependencies.logger.error({ instanceId, err: error }, `unexpected failure: ${messageOf(error)}`);
    });
    lane.tail = done.then(() => {
      if (lane.tail === whenIdle && !lane.next) this.lanes.delete(instanceId);
    });
    const whenIdle = lane.tail;
    return done;
  }

  private alone(job: Job): Promise<void> {
    const done = this.suspects.then(() => (this.stopping ? undefined : this.run(job)));
    this.suspects = done.catch(() => undefined);
    return done;
  }

  private async run(job: Job): Promise<void> {
    const { commandId } = job.attempt.command;
    this.journal.beginAttempt(commandId);
    try {
      await this.carryOut(job);
    } finally {
      if (!this.stopping) this.journal.endAttempt(commandId);
    }
  }

  /** Runs an attempt and answers. The answer is sent outside of the try block: if the journal cannot record it, nothing is rolled back. */
  private async carryOut(job: Job): Promise<void> {
    const { attempt } = job;
    const { command } = attempt;
    let achieved: { result: CommandResult; desired?: Desired };
    try {
      achieved = await this.achieve(attempt);
    } catch (error) {
      if (!attempt.signal.aborted) await this.fail(job, error);
      // The next command brings the instance to its desired state, whatever this one has left behind.
      if (attempt.signal.aborted && !this.stopping) this.answer(job, staleResult(command, this.highestOf(command)));
      return;
    }
    this.answer(job, achieved.result, achieved.desired);
  }

  /** Brings the instance to the state that the command wants. Returns the result and the new desired state. */
  private async achieve(attempt: Attempt): Promise<{ result: CommandResult; desired?: Desired }> {
    const { command } = attempt;
    const last = isDestroy(command) ? await this.lastRun(command.instanceId) : {};
    const workload = await retryWhileDockerIsDown(this.dependencies, attempt, () =>
      reconcile(this.dependencies, attempt),
    );
    if (isKept(command)) return { result: doneBy(attempt) };
    await this.dependencies.guardedPorts.note(command.instanceId, workload);
    const { observer, remover } = this.dependencies;
    // A workload that ended during its start has had a run, too.
    if (workload.state === 'stopped') remover.note(command.instanceId, workload);
    // The log of a dangerous workload could crash this process.
    const observation = attempt.isDangerous
      ? observer.observe(workload)
      : await observer.observeWithLog(command.instanceId, workload);
    if (workload.state === 'absent') observer.forget(command.instanceId);
    const result = { ...doneBy(attempt), observation: { ...observation, ...last } };
    return { result, desired: desiredAfter(command, workload) };
  }

  /** Returns the current run, because a workload is charged until it is removed. */
  private async lastRun(instanceId: string): Promise<{ runId?: string; runningMs?: number }> {
    const { runtime, observer } = this.dependencies;
    const workload = await runtime.find(instanceId).catch(() => undefined);
    const last = workload?.state === 'running' ? observer.observe(workload) : undefined;
    return last ? { runId: last.runId, runningMs: last.runningMs } : {};
  }

  private async fail(job: Job, error: unknown): Promise<void> {
    const { attempt, before } = job;
    const { command } = attempt;
    const failure =
      error instanceof Failure ? error : new Failure('CONTAINER_FAILED', messageOf(error), { cause: error });
    this.dependencies.logger.warn({ ...idsOf(command), code: failure.code }, failure.message);
    // A stop or destroy cannot fail: it stays open, and the control plane sends it again.
    if (command.desired && command.desired.$case !== 'running') return;
    const reason = { code: failure.code, message: failure.message };
    if (!attempt.mayHaveActed && !isProvision(command)) {
      return this.answer(
        job,
        { ...resultOf(command, CommandOutcome.COMMAND_OUTCOME_REFUSED), ...reason },
        before ?? 'absent',
      );
    }
    await rollBack(this.dependencies, attempt).catch(() => undefined);
    if (attempt.signal.aborted) return;
    const found = await this.dependencies.runtime.find(command.instanceId).catch(() => undefined);
    if (found) await this.dependencies.guardedPorts.note(command.instanceId, found);
    const result = { ...resultOf(command, CommandOutcome.COMMAND_OUTCOME_FAILED), ...reason };
    this.answer(job, result, found?.state === 'absent' ? 'absent' : 'stopped');
  }

  private highestOf({ instanceId, sequence }: Command): number {
    return this.journal.instance(instanceId)?.sequence ?? sequence;
  }

  private answer({ attempt: { command } }: Job, result: CommandResult, desired?: Desired): void {
    this.dependencies.logger.info({ ...idsOf(command), outcome: CommandOutcome[result.outcome] }, 'command finished');
    // If a newer command has arrived, that one sets the desired state.
    const isNewest = this.highestOf(command) === command.sequence;
    this.journal.finish(result, isNewest ? desired : undefined);
    this.onFinished(kindOf(command), CommandOutcome[result.outcome].replace('COMMAND_OUTCOME_', '').toLowerCase());
    this.outbox.result(result);
  }
}

/** Returns the ids for each log line about a command. */
function idsOf({ requestId, instanceId, commandId }: Command) {
  return { ...(requestId === '' ? {} : { requestId }), instanceId, commandId };
}

function idOf(job: Job | undefined): string | undefined {
  return job?.attempt.command.commandId;
}

function kindOf(command: Command): string {
  return isProvision(command) ? 'provision' : (command.desired?.$case ?? 'unknown');
}

function isProvision({ desired }: Command): boolean {
  return desired?.$case === 'running' && desired.value.mayCreate;
}

function isKept({ desired }: Command): boolean {
  return desired?.$case === 'kept';
}

function isDestroy(command: Command): boolean {
  return command.desired?.$case === 'absent';
}

function desiredBy({ desired }: Command): Desired {
  return desired?.$case === undefined || desired.$case === 'kept' ? 'stopped' : desired.$case;
}

function desiredAfter(command: Command, workload: Workload): Desired {
  const desired = desiredBy(command);
  return desired === 'running' && workload.state !== 'running' ? 'ended' : desired;
}

function resultOf({ commandId, instanceId, sequence }: Command, outcome: CommandOutcome): CommandResult {
  return {
    commandId,
    instanceId,
    sequence,
    outcome,
    code: '',
    message: '',
    observation: undefined,
    highestSequence: 0,
    runs: [],
    accessRevision: 0,
    sshKeyStays: false,
  };
}

function doneBy({ command, access }: Attempt): CommandResult {
  return { ...resultOf(command, CommandOutcome.COMMAND_OUTCOME_DONE), ...access };
}

function staleResult(command: Command, highestSequence: number): CommandResult {
  return { ...resultOf(command, CommandOutcome.COMMAND_OUTCOME_STALE), highestSequence };
}
