import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { Journal } from '../../../agent/journal/journal.js';
import { RunAges } from '../../../agent/observation/run-ages.js';
import type { EndedRun } from '../../../shared/gen/gpurent/agent/v1/agent.js';
import type { ManualClock } from '../../harness/manual-clock.js';
import { memoryFolder } from '../../harness/memory-folder.js';
import { FakeWorkloads, type FakeWorkload } from './workloads.js';

/** Times of a run by Docker's clock, and when its host has last told of it truly, in milliseconds that no clock shows. */
interface Stamps {
  startedAt: number;
  finishedAt: number;
  seenAt: number;
  steps: number;
}

/** The control plane writes what heartbeats say of a run only so often, and keeps the rest as long as the host is connected. */
const WRITTEN_EVERY_MS = 30_000;
/** What the clock of a host shows that is right. */
const START = Date.parse('2026-01-01T00:00:00.000Z');

/** Workloads of which an agent says what its own parts make of clocks that can be wrong, with a journal in a real file. */
export class StatedWorkloads extends FakeWorkloads {
  /** By how much the clocks are wrong, in milliseconds. */
  private readonly wrong = { host: 0, docker: 0 };
  private steps = 0;
  isAgentUp = true;
  /** By instance: how much of its runs may stay uncharged, because a clock was set between the last sight of a run and its end. */
  readonly undated = new Map<string, number>();
  private readonly folder = memoryFolder('gpurent-clocks-');
  private readonly stamps = new Map<string, Stamps>();
  private readonly journal: Journal;
  private readonly hostClock = {
    now: () => START + this.clock.monotonic() + this.wrong.host,
    monotonic: () => this.clock.monotonic() - this.bootedAt,
    schedule: () => ({ cancel: () => undefined }),
  };
  private ages: RunAges;
  private bootedAt = 0;
  private boots = 0;

  constructor(clock: ManualClock) {
    super(clock);
    this.journal = new Journal(join(this.folder, 'journal.db'));
    this.ages = this.newAgent();
    this.boot();
  }

  /** Somebody sets a clock. */
  step(which: 'host' | 'docker' | 'both', ms: number): void {
    if (which !== 'docker') this.wrong.host += ms;
    if (which !== 'host') this.wrong.docker += ms;
    this.steps++;
  }

  /** The host has booted: its monotonic clock begins anew. */
  boot(): void {
    this.bootedAt = this.clock.monotonic() - 60_000;
    this.journal.setMeta('boot_id', `boot ${++this.boots}`);
    this.ages = this.newAgent();
  }

  /** A new process of the agent looks at what there is. */
  startAgent(): void {
    this.isAgentUp = true;
    this.ages = this.newAgent();
    for (const [id, workload] of this) if (!workload.isUp) this.note(id, workload);
  }

  override comeUp(workload: FakeWorkload): void {
    const [id = ''] = [...this].find(([, one]) => one === workload) ?? [];
    this.ages.startsNow(id);
    super.comeUp(workload);
    this.stamps.set(workload.runId, {
      startedAt: this.dockersNow(),
      finishedAt: 0,
      seenAt: this.clock.monotonic(),
      steps: this.steps,
    });
    this.ageOf(workload);
  }

  override goDown(id: string, workload: FakeWorkload): void {
    Object.assign(workload, { isUp: false });
    const stamps = this.stamps.get(workload.runId);
    if (stamps) stamps.finishedAt = this.dockersNow();
    const unseenMs = this.clock.monotonic() - (stamps?.seenAt ?? 0);
    const isDated = this.isAgentUp && stamps?.steps === this.steps;
    if (!isDated) this.undated.set(id, (this.undated.get(id) ?? 0) + unseenMs + WRITTEN_EVERY_MS);
    if (this.isAgentUp) this.note(id, workload);
  }

  override ageOf(workload: FakeWorkload): number {
    const [instanceId = ''] = [...this].find(([, one]) => one === workload) ?? [];
    const stamps = this.stamps.get(workload.runId);
    if (stamps) Object.assign(stamps, { seenAt: this.clock.monotonic(), steps: this.steps });
    return this.ages.ageOf({ instanceId, startedAt: stamps?.startedAt ?? 0 });
  }

  override endedRuns(id: string): EndedRun[] {
    return this.isAgentUp ? this.journal.runsFor(id, 'a message', this.hostClock) : [];
  }

  close(): void {
    this.journal.close();
    rmSync(this.folder, { recursive: true, force: true });
  }

  private note(instanceId: string, workload: FakeWorkload): void {
    const stamps = this.stamps.get(workload.runId);
    if (!stamps) return;
    workload.ranMs = this.ages.lasted({ instanceId, ...stamps });
    const endedMs = this.ages.endOf({ instanceId, ...stamps }, workload.ranMs);
    const run = { instanceId, runId: workload.runId, ranMs: workload.ranMs };
    this.journal.noteEndedRun({ ...run, endedAt: stamps.finishedAt, endedMs });
  }

  private newAgent(): RunAges {
    return new RunAges(this.hostClock, this.journal, () => this.wrong.docker - this.wrong.host);
  }

  private dockersNow(): number {
    return START + this.clock.monotonic() + this.wrong.docker;
  }
}
