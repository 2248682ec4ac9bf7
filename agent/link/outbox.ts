import type {
  AgentMessage,
  CommandResult,
  EndedRun,
  LogChunk,
  Progress,
  WorkloadReport,
} from '../../shared/gen/gpurent/agent/v1/agent.js';
import { nameOfReport } from '../domain/ended-run.js';

/** Takes a message, unless the stream is down, or congested and the message `may wait`; false when it was not taken. */
export type Send = (message: AgentMessage, importance: 'must go' | 'may wait') => boolean;

/**
 * What goes to the control plane, whether or not it is connected. Results and reports are in the journal and go out again at
 * the next connect until they are acknowledged; everything else may be lost.
 */
export class Outbox {
  private send: Send = () => false;

  /** `runsOf`: the ended runs of an instance that a message of this name is to tell of, until that is acknowledged. */
  constructor(private readonly runsOf: (instanceId: string, message: string) => EndedRun[]) {}

  /** Where messages go from now on. */
  connect(send: Send): void {
    this.send = send;
  }

  disconnect(): void {
    this.send = () => false;
  }

  result(value: CommandResult): void {
    const runs = this.runsOf(value.instanceId, value.commandId);
    this.send({ message: { $case: 'commandResult', value: { ...value, runs } } }, 'must go');
  }

  report(value: WorkloadReport): void {
    const runs = this.runsOf(value.instanceId, nameOfReport(value));
    this.send({ message: { $case: 'workloadReport', value: { ...value, runs } } }, 'must go');
  }

  progress(value: Progress): void {
    this.send({ message: { $case: 'progress', value } }, 'may wait');
  }

  /** False when it was not taken. */
  logChunk(value: LogChunk): boolean {
    return this.send({ message: { $case: 'logChunk', value } }, 'may wait');
  }
}
