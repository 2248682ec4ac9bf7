import type { Clock } from '../../../shared/clock.js';
import { messageOf } from '../../../shared/coded-error.js';
import { pageFrom, type ListOrPage, type PageRequest } from './pages.js';

/** The runs of a worker since this process started. Times are milliseconds since 1970 UTC; null: never. */
export interface WorkerState {
  name: string;
  runs: number;
  failures: number;
  /** Whether its last run failed. */
  failing: boolean;
  /** When the first of the failed runs began after which none succeeded. */
  failing_since: number | null;
  last_run_at: number | null;
  last_run_ms: number | null;
  last_failure_at: number | null;
  last_failure: string | null;
}

/** Most characters that are kept of a failure's message. */
const MESSAGE_LENGTH = 500;
const NEVER = { runs: 0, failures: 0, failing: false, failing_since: null, last_run_at: null, last_run_ms: null };

/** Records the runs of the workers, so that operators see which one fails. */
export class WorkerRuns {
  private readonly states = new Map<string, WorkerState>();

  constructor(private readonly clock: Pick<Clock, 'now' | 'monotonic'>) {}

  /** Adds a worker, which must happen before its first run. */
  declare(name: string): void {
    this.states.set(name, { name, ...NEVER, last_failure_at: null, last_failure: null });
  }

  /** Runs a worker and records the outcome. Throws what the worker throws, and an Error for a worker that was not declared. */
  record<T>(name: string, run: () => T): T {
    const state = this.states.get(name);
    if (!state) throw new Error(`worker ${name} is not declared`);
    const began = this.clock.monotonic();
    state.last_run_at = this.clock.now();
    state.runs += 1;
    try {
      const report = run();
      state.failing = false;
      state.failing_since = null;
      return report;
    } catch (error) {
      state.failing = true;
      state.failing_since ??= state.last_run_at;
      state.failures += 1;
      state.last_failure_at = state.last_run_at;
      state.last_failure = messageOf(error).slice(0, MESSAGE_LENGTH);
      throw error;
    } finally {
      state.last_run_ms = this.clock.monotonic() - began;
    }
  }

  /** Returns copies of the states of all workers, by name. */
  list(): WorkerState[] {
    return [...this.states.values()].map((state) => ({ ...state })).sort((a, b) => (a.name < b.name ? -1 : 1));
  }
}

/** Lists the workers of this control plane for an operator, by name. */
export function listWorkers({ workerRuns }: { workerRuns: WorkerRuns }, request: PageRequest): ListOrPage<WorkerState> {
  return pageFrom(workerRuns.list(), request, { by: { name: 'asc' }, keyOf: ({ name }) => [name] });
}
