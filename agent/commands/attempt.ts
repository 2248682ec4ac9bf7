import type { Command, PulledImage } from '../../shared/gen/gpurent/agent/v1/agent.js';
import type { OnProgress } from '../runtime/workload.js';

/** One try of one command. */
export class Attempt {
  /** Whether this attempt created the workload, so that a roll back can remove it without losing a renter's disk. */
  created = false;
  /** How often the agent has crashed during this command. */
  readonly crashes: number;
  /** Which of the command's access is in force, for the result. */
  access = { accessRevision: 0, sshKeyStays: false };
  private begun: boolean;
  private runBefore: number | null;
  private waitsFor: string | undefined;
  private readonly superseded = new AbortController();

  constructor(
    readonly command: Command,
    /** The journal's record of an earlier attempt that a crash interrupted. How far that attempt got is unknown. */
    earlier: { runBefore: number | null; crashes: number } | undefined,
    /** Tells whether an earlier stop can still take effect in Docker. */
    readonly stopMayBePending: () => boolean,
    private readonly says: {
      onAccept: () => void;
      onStart: (runBefore: number) => void;
      onProgress: (
        kind: string,
        message: string,
        more?: { gpusFree?: boolean; pulled?: PulledImage | undefined },
      ) => void;
    },
  ) {
    this.crashes = earlier?.crashes ?? 0;
    this.begun = earlier !== undefined;
    this.runBefore = earlier?.runBefore ?? null;
  }

  /** Whether this command is treated as the cause of crashes, because the agent has crashed at least twice during it. */
  get isDangerous(): boolean {
    return this.crashes >= 2;
  }

  get onProgress(): OnProgress {
    return (kind, message, pulled) => this.says.onProgress(kind, message, { pulled });
  }

  /** Reports that the command is still being tried. `gpusFree`: whether the workload no longer uses its GPUs. */
  tellOfTrying(kind: 'stop_attempt' | 'destroy_attempt', message: string, gpusFree: boolean): void {
    this.says.onProgress(kind, message, { gpusFree });
  }

  /** Reports what the command waits for. The same message is not reported twice in a row. */
  tellOfWaiting(message: string): void {
    if (message === this.waitsFor) return;
    this.waitsFor = message;
    this.says.onProgress('waiting', message);
  }

  /** Aborted if a newer command replaces this one or the agent stops. Only steps without side effects obey it. */
  get signal(): AbortSignal {
    return this.superseded.signal;
  }

  /** Whether this command can have changed anything on the host. */
  get mayHaveActed(): boolean {
    return this.begun;
  }

  /** Reports that all checks have passed and the work begins. */
  accept(): void {
    this.begun = true;
    this.says.onAccept();
  }

  /** Tells whether this command has already started the last run of a stopped workload, which began at `startedAt`. */
  alreadyRan(startedAt: number): boolean {
    return this.runBefore !== null && this.runBefore !== startedAt;
  }

  /** Whether this command has started a run. An earlier stop does not apply to that run. */
  get hasStartedRun(): boolean {
    return this.runBefore !== null;
  }

  /** Records the run that began at `startedAt` before this command starts or rolls back a run, so that a repeat can tell them apart. */
  recordPreviousRun(startedAt: number): void {
    this.runBefore = startedAt;
    this.says.onStart(startedAt);
  }

  abort(reason: Error): void {
    this.superseded.abort(reason);
  }
}
