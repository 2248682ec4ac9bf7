import type {
  AgentMessage,
  CommandResult,
  EndedRun,
  LogChunk,
  MeasurementAnswer,
  MeasurementReport,
  Progress,
  WorkloadReport,
} from '../../shared/gen/gpurent/agent/v1/agent.js';
import { nameOfReport } from '../domain/ended-run.js';

/** Sends a message. Returns false, without sending it, if the stream is down, or if it is congested and the message `may wait`. */
export type Send = (message: AgentMessage, importance: 'must go' | 'may wait') => boolean;

/**
 * Sends messages to the control plane while it is connected. Results and reports are in the journal: the agent sends them again at the
 * next connect until they are acknowledged. All other messages can be lost.
 */
export class Outbox {
  private send: Send = () => false;

  /** `runsOf` returns the ended runs of an instance, and records that the message with this name reports them. */
  constructor(private readonly runsOf: (instanceId: string, message: string) => EndedRun[]) {}

  /** Sends messages with `send` from now on. */
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

  /** Returns false if the measurements were not sent. */
  measurements(value: MeasurementReport): boolean {
    return this.send({ message: { $case: 'measurementReport', value } }, 'may wait');
  }

  measurementAnswer(value: MeasurementAnswer): void {
    this.send({ message: { $case: 'measurementAnswer', value } }, 'may wait');
  }

  /** Returns false if the chunk was not sent. */
  logChunk(value: LogChunk): boolean {
    return this.send({ message: { $case: 'logChunk', value } }, 'may wait');
  }
}
