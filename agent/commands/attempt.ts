import type { Command } from '../../shared/gen/gpurent/agent/v1/agent.js';
import type { OnProgress } from '../runtime/workload.js';

/** One command under way. */
export class Attempt {
  /** Whether the workload was made by this very attempt, so that undoing it loses no renter's disk. */
  created = false;
  private begun: boolean;
  private readonly superseded = new AbortController();

  constructor(
    readonly command: Command,
    /** A crash has cut an earlier attempt at it short: what that one did is not known. */
    resumed: boolean,
    private readonly onAccept: () => void,
    readonly onProgress: OnProgress,
  ) {
    this.begun = resumed;
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
    this.onAccept();
  }

  giveWay(reason: Error): void {
    this.superseded.abort(reason);
  }
}
