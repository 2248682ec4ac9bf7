import { messageOf } from '../../shared/coded-error.js';
import { CommandOutcome, type Command, type CommandResult } from '../../shared/gen/gpurent/agent/v1/agent.js';
import { Failure } from '../domain/failure.js';
import type { Desired, Journal } from '../journal/journal.js';
import type { Outbox } from '../link/outbox.js';
import type { Workload } from '../runtime/workload.js';
import { observe } from './observe.js';
import { patiently, perform, undo, type Attempt, type Hands } from './perform.js';

interface Job {
  command: Command;
  superseded: AbortController;
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

  constructor(
    private readonly hands: Hands,
    private readonly journal: Journal,
    private readonly outbox: Outbox,
  ) {}

  receive(command: Command): void {
    const { commandId, instanceId, sequence } = command;
    const known = this.journal.command(commandId);
    if (known?.state === 'finished') return this.outbox.result(known.result);
    const lane = this.lanes.get(instanceId);
    if (lane?.current?.command.commandId === commandId || lane?.next?.command.commandId === commandId) return;
    const highest = Math.max(this.journal.instance(instanceId)?.sequence ?? 0, this.floors.get(instanceId) ?? 0);
    if (sequence < highest) return this.outbox.result(staleResult(command, highest));
    this.journal.begin(command, desiredBy(command));
    this.enqueue({ command, superseded: new AbortController() });
  }

  /** From Welcome: what is below never runs again, also on a host that lost its journal. */
  raiseFloor(instanceId: string, sequence: number): void {
    this.floors.set(instanceId, sequence);
    this.journal.raiseFloor(instanceId, sequence);
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

  private enqueue(job: Job): void {
    const lane = this.lane(job.command.instanceId);
    const reason = new Failure('SUPERSEDED', 'a newer command of the instance has come');
    if (lane.next) this.answer(lane.next, staleResult(lane.next.command, job.command.sequence));
    lane.next = job;
    if (!isDestroy(lane.current?.command)) lane.current?.superseded.abort(reason);
    void this.append(job.command.instanceId, async () => {
      // Another one has taken the place of this one while it waited.
      if (lane.next !== job) return;
      lane.next = undefined;
      lane.current = job;
      try {
        await this.run(job);
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
      this.hands.logger.error({ instanceId, err: error }, `unexpected failure: ${messageOf(error)}`);
    });
    lane.tail = done.then(() => {
      if (lane.tail === settled && !lane.next) this.lanes.delete(instanceId);
    });
    const settled = lane.tail;
    return done;
  }

  private async run(job: Job): Promise<void> {
    const { command, superseded } = job;
    let accepted = false;
    const attempt: Attempt = {
      command,
      signal: superseded.signal,
      accept: () => {
        if (!accepted) this.outbox.result(resultOf(command, CommandOutcome.COMMAND_OUTCOME_ACCEPTED));
        accepted = true;
      },
      onProgress: (kind, message) => this.outbox.progress({ instanceId: command.instanceId, kind, message }),
    };
    try {
      const workload = await patiently(this.hands, attempt, () => perform(this.hands, attempt));
      const observation = await observe(this.hands.runtime, command.instanceId, workload);
      const result = { ...resultOf(command, CommandOutcome.COMMAND_OUTCOME_DONE), observation };
      this.answer(job, result, desiredAfter(command, workload));
    } catch (error) {
      await this.fail(job, attempt, accepted, error);
    }
  }

  private async fail(job: Job, attempt: Attempt, accepted: boolean, error: unknown): Promise<void> {
    const { command } = job;
    const newest = this.journal.instance(command.instanceId)?.sequence ?? command.sequence;
    // What comes next brings the instance to where it should be, whatever this one has left.
    if (isSuperseded(job)) return this.answer(job, staleResult(command, newest));
    const failure =
      error instanceof Failure ? error : new Failure('CONTAINER_FAILED', messageOf(error), { cause: error });
    this.hands.logger.warn(
      { commandId: command.commandId, instanceId: command.instanceId, code: failure.code },
      failure.message,
    );
    const provision = command.desired?.$case === 'running' && command.desired.value.mayCreate;
    if (accepted || provision) await undo(this.hands, attempt).catch(() => undefined);
    if (isSuperseded(job)) return this.answer(job, staleResult(command, newest));
    const outcome =
      accepted || provision ? CommandOutcome.COMMAND_OUTCOME_FAILED : CommandOutcome.COMMAND_OUTCOME_REFUSED;
    const result = { ...resultOf(command, outcome), code: failure.code, message: failure.message };
    this.answer(job, result, provision ? 'absent' : 'stopped');
  }

  private answer({ command }: Job, result: CommandResult, desired?: Desired): void {
    this.hands.logger.info(
      { commandId: command.commandId, instanceId: command.instanceId, outcome: CommandOutcome[result.outcome] },
      'command finished',
    );
    // A newer command has said by now what the instance is meant to be.
    const isNewest = this.journal.instance(command.instanceId)?.sequence === command.sequence;
    this.journal.finish(result, isNewest ? desired : undefined);
    this.outbox.result(result);
  }
}

function isSuperseded({ superseded }: Job): boolean {
  return superseded.signal.aborted;
}

function isDestroy(command: Command | undefined): boolean {
  return command?.desired?.$case === 'absent';
}

function desiredBy({ desired }: Command): Desired {
  return desired?.$case ?? 'stopped';
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
  };
}

function staleResult(command: Command, highestSequence: number): CommandResult {
  return { ...resultOf(command, CommandOutcome.COMMAND_OUTCOME_STALE), highestSequence };
}
