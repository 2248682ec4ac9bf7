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
  /** What the instance was meant to be before this command. */
  before: Desired | undefined;
}

/** One instance's work: one thing at a time, at most one command waiting. */
interface Lane {
  current: Job | undefined;
  next: Job | undefined;
  tail: Promise<void>;
}

/**
 * Carries out commands by their identity: each at most once, the newest of an instance last, whatever is lost, repeated or
 * late on the wire.
 */
export class Executor {
  private readonly lanes = new Map<string, Lane>();
  private readonly floors = new Map<string, number>();
  private stopping = false;
  /** Commands in the middle of which the agent has crashed run one after another: so it shows which of them is the cause. */
  private suspects: Promise<unknown> = Promise.resolve();
  /** A command has got its last answer. */
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
    // What can be done any number of times leaves no trace: while it waits to be sent again, nothing waits for it.
    if (isKept(command)) this.journal.raise(instanceId, sequence, 0);
    else this.journal.begin(command, desiredBy(command));
    this.enqueue({ attempt: this.attempt(command, known), before });
  }

  /** From Welcome: what is below never runs again, also on a host that lost its journal. */
  raiseFloor({ instanceId, sequence, reportNumber, running, commandOpen }: SequenceFloor): void {
    this.floors.set(instanceId, sequence);
    this.journal.raise(instanceId, sequence, reportNumber);
    const isUnsure = this.journal.instance(instanceId)?.desired === 'unsure';
    const isForgotten = !commandOpen && !this.isBusy(instanceId) && this.journal.isUnfinished(instanceId);
    if (isUnsure || isForgotten) this.journal.abandon(instanceId, running ? 'running' : 'stopped');
  }

  /** Takes no more commands and lets go of what waits; what is cut short is done when it is sent again. */
  async stop(): Promise<void> {
    this.stopping = true;
    this.journal.endAttempt();
    for (const { current } of this.lanes.values())
      current?.attempt.abort(new Failure('SUPERSEDED', 'the agent is stopping'));
    await this.idle();
  }

  /** Whether a command of the instance is waiting or under way. */
  isBusy(instanceId: string): boolean {
    const lane = this.lanes.get(instanceId);
    return lane?.current !== undefined || lane?.next !== undefined;
  }

  /** Runs `work` between commands of the instance, never beside one. */
  exclusively(instanceId: string, work: () => Promise<void>): Promise<void> {
    return this.append(instanceId, work);
  }

  /** Resolves when nothing is under way. */
  async idle(): Promise<void> {
    await Promise.all([...this.lanes.values()].map(({ tail }) => tail));
  }

  private attempt(command: Command, earlier: { runBefore: number | null; crashes: number } | undefined): Attempt {
    const { commandId, instanceId } = command;
    const isStopOut = () => this.journal.isStopCutShort(instanceId);
    return new Attempt(command, earlier, isStopOut, {
      onAccept: () => this.outbox.result(resultOf(command, CommandOutcome.COMMAND_OUTCOME_ACCEPTED)),
      onStart: (runBefore) => this.journal.noteRun(commandId, runBefore),
      onProgress: (kind, message, gpusFree = false) => this.outbox.progress({ instanceId, kind, message, gpusFree }),
    });
  }

  private enqueue(job: Job): void {
    const { command } = job.attempt;
    const lane = this.lane(command.instanceId);
    if (lane.next) this.answer(lane.next, staleResult(lane.next.attempt.command, command.sequence));
    lane.next = job;
    const current = lane.current?.attempt;
    if (current && !isDestroy(current.command)) {
      current.abort(new Failure('SUPERSEDED', 'a newer command of the instance has come'));
    }
    void this.append(command.instanceId, async () => {
      // Another one has taken the place of this one while it waited.
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

  /** What was achieved is answered outside of what undoes an attempt: an answer that cannot be kept takes nothing back. */
  private async carryOut(job: Job): Promise<void> {
    const { attempt } = job;
    const { command } = attempt;
    let achieved: { result: CommandResult; desired?: Desired };
    try {
      achieved = await this.achieve(attempt);
    } catch (error) {
      if (!attempt.signal.aborted) await this.fail(job, error);
      // What comes next brings the instance to where it should be, whatever this one has left.
      if (attempt.signal.aborted && !this.stopping) this.answer(job, staleResult(command, this.highestOf(command)));
      return;
    }
    this.answer(job, achieved.result, achieved.desired);
  }

  /** Brings the instance to where the command wants it. Returns the answer, and what the instance is meant to be from now on. */
  private async achieve(attempt: Attempt): Promise<{ result: CommandResult; desired?: Desired }> {
    const { command } = attempt;
    const last = isDestroy(command) ? await this.lastRun(command.instanceId) : {};
    const workload = await retryWhileDockerIsDown(this.dependencies, attempt, () =>
      reconcile(this.dependencies, attempt),
    );
    if (isKept(command)) return { result: doneBy(attempt) };
    await this.dependencies.guardedPorts.note(command.instanceId, workload);
    const { observer, remover } = this.dependencies;
    // One that ended while it was brought up has run all the same.
    if (workload.state === 'stopped') remover.note(command.instanceId, workload);
    // What a dangerous one has printed is not read in this process either.
    const observation = attempt.isDangerous
      ? observer.observe(workload)
      : await observer.observeWithLog(command.instanceId, workload);
    if (workload.state === 'absent') observer.forget(command.instanceId);
    const result = { ...doneBy(attempt), observation: { ...observation, ...last } };
    return { result, desired: desiredAfter(command, workload) };
  }

  /** What is removed while it runs is paid for up to here. */
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
    // A stop or destroy has no other end than being done: left open, it is sent again.
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
    // A newer command has said by now what the instance is meant to be.
    const isNewest = this.highestOf(command) === command.sequence;
    this.journal.finish(result, isNewest ? desired : undefined);
    this.onFinished(kindOf(command), CommandOutcome[result.outcome].replace('COMMAND_OUTCOME_', '').toLowerCase());
    this.outbox.result(result);
  }
}

/** What stands with each line in the log about a command. */
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
