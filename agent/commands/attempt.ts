import type { Command } from '../../shared/gen/gpurent/agent/v1/agent.js';
import type { OnProgress } from '../runtime/workload.js';

/** One command under way. */
export class Attempt {
  /** Whether the workload was made by this very attempt, so that undoing it loses no renter's disk. */
  created = false;
  /** How often the agent's process has ended in the middle of this command. */
  readonly crashes: number;
  /** What of the command's access is in force, for its result. */
  access = { accessRevision: 0, sshKeyStays: false };
  private begun: boolean;
  private runBefore: number | null;
  private waitsFor: string | undefined;
  private readonly superseded = new AbortController();

  constructor(
    readonly command: Command,
    /** What the journal has of an earlier attempt, which a crash has cut short: what that one did is not known. */
    earlier: { runBefore: number | null; crashes: number } | undefined,
    /** Whether an earlier stop may still take the workload down. */
    readonly stopMayBePending: () => boolean,
    private readonly says: {
      onAccept: () => void;
      onStart: (runBefore: number) => void;
      onProgress: (kind: string, message: string, gpusFree?: boolean) => void;
    },
  ) {
    this.crashes = earlier?.crashes ?? 0;
    this.begun = earlier !== undefined;
    this.runBefore = earlier?.runBefore ?? null;
  }

  /** Whether it is taken for the cause of the crashes: an accident is not likely to happen twice. */
  get isDangerous(): boolean {
    return this.crashes >= 2;
  }

  get onProgress(): OnProgress {
    return (kind, message) => this.says.onProgress(kind, message);
  }

  /** It is still tried; `gpusFree`: whether nothing of the workload is on its GPUs any more. */
  tellOfTrying(kind: 'stop_attempt' | 'destroy_attempt', message: string, gpusFree: boolean): void {
    this.says.onProgress(kind, message, gpusFree);
  }

  /** What it waits for, told once for each thing in a row. */
  tellOfWaiting(message: string): void {
    if (message === this.waitsFor) return;
    this.waitsFor = message;
    this.says.onProgress('waiting', message);
  }

  /** Aborted when the attempt is to give way; only what leaves no trace heeds it. */
  get signal(): AbortSignal {
    return this.superseded.signal;
  }

  /** Whether it may have touched anything. */
  get mayHaveActed(): boolean {
    return this.begun;
  }

  /** Everything was checked, the work begins. */
  accept(): void {
    this.begun = true;
    this.says.onAccept();
  }

  /** Whether a workload that is down, and whose last run began at `startedAt`, has had its run under this very command. */
  alreadyRan(startedAt: number): boolean {
    return this.runBefore !== null && this.runBefore !== startedAt;
  }

  /** Whether this very command has started a run, which no earlier stop is out for. */
  get hasStartedRun(): boolean {
    return this.runBefore !== null;
  }

  /** The run that began at `startedAt` is none of this command's, which is about to start one, or to end what it started. */
  recordPreviousRun(startedAt: number): void {
    this.runBefore = startedAt;
    this.says.onStart(startedAt);
  }

  abort(reason: Error): void {
    this.superseded.abort(reason);
  }
}
