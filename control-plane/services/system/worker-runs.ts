import type { Clock } from '../../../shared/clock.js';
import { messageOf } from '../../../shared/coded-error.js';
import { pageFrom, type Page, type PageRequest } from './pages.js';

/** How a worker has done since this process began. Times are milliseconds since 1970 UTC; null: never. */
export interface WorkerState {
  name: string;
  runs: number;
  failures: number;
  /** Whether its last run failed. */
  failing: boolean;
  last_run_at: number | null;
  last_run_ms: number | null;
  last_failure_at: number | null;
  last_failure: string | null;
}

/** What is kept of the message of a failure. */
const MESSAGE_LENGTH = 500;
const NEVER = { runs: 0, failures: 0, failing: false, last_run_at: null, last_run_ms: null };

/** Records each run of the workers, for operators to see which one fails. Only declared workers are kept. */
export class WorkerRuns {
  private readonly states = new Map<string, WorkerState>();

  constructor(private readonly clock: Pick<Clock, 'now' | 'monotonic'>) {}

  /** Names a worker before its first run. */
  declare(name: string): void {
    this.states.set(name, { name, ...NEVER, last_failure_at: null, last_failure: null });
  }

  /** Runs a worker and records how that went. Throws what the worker throws. */
  record<T>(name: string, run: () => T): T {
    const state = this.states.get(name);
    if (!state) throw new Error(`no worker ${name} is declared`);
    const began = this.clock.monotonic();
    state.last_run_at = this.clock.now();
    state.runs += 1;
    try {
      const report = run();
      state.failing = false;
      return report;
    } catch (error) {
      state.failing = true;
      state.failures += 1;
      state.last_failure_at = state.last_run_at;
      state.last_failure = messageOf(error).slice(0, MESSAGE_LENGTH);
      throw error;
    } finally {
      state.last_run_ms = this.clock.monotonic() - began;
    }
  }

  /** The states of all workers as they are now, by name. */
  list(): WorkerState[] {
    return [...this.states.values()].map((state) => ({ ...state })).sort((a, b) => (a.name < b.name ? -1 : 1));
  }
}

/** Operators: the workers of this control plane, by name. */
export function listWorkers({ workerRuns }: { workerRuns: WorkerRuns }, request: PageRequest): Page<WorkerState> {
  return pageFrom(workerRuns.list(), request, { by: { name: 'asc' }, keyOf: ({ name }) => [name] });
}
