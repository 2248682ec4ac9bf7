import type { HaltedRuns, Runs } from '../../agent/outages/halted-runs.js';

/** Halted runs that outlive an agent, and its journal. */
export class HaltedRunsInMemory implements HaltedRuns {
  constructor(private runs: Runs = {}) {}

  async read(): Promise<Runs> {
    return this.runs;
  }

  async write(runs: Runs): Promise<void> {
    this.runs = runs;
  }
}
