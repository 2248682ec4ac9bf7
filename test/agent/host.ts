import { NO_NEEDS } from '../../agent/host/needs.js';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { RunRecorder, type Remover } from '../../agent/observation/run-recorder.js';
import { Executor } from '../../agent/commands/executor.js';
import { Journal } from '../../agent/journal/journal.js';
import { Outbox } from '../../agent/link/outbox.js';
import type { DockerWatch } from '../../agent/runtime/workload.js';
import { GpuAccess } from '../../agent/commands/gpu-access.js';
import { Observer } from '../../agent/observation/observer.js';
import { GuardedPorts } from '../../agent/guarded-ports/guarded-ports.js';
import type { GuardedPort } from '../../agent/proxy/state.js';
import { OutageTracker } from '../../agent/outages/outage-tracker.js';
import { PaidTimes } from '../../agent/watch/paid-times.js';
import { Watcher } from '../../agent/watch/watcher.js';
import {
  CommandOutcome,
  type Access,
  type Command,
  type CommandResult,
  type Progress,
  type WorkloadReport,
} from '../../shared/gen/gpurent/agent/v1/agent.js';
import { silentLogger } from '../../shared/logger.js';
import { PacedLog } from '../../shared/paced-log.js';
import { BusyGpus } from '../harness/busy-gpus.js';
import { eventually } from '../../scripts/eventually.js';
import { advanceUntil } from '../harness/advance-until.js';
import { FakeRuntime } from '../harness/fake-runtime.js';
import { HaltedRunsInMemory } from '../harness/halted-runs-in-memory.js';
import { ManualClock } from '../harness/manual-clock.js';
import { specOf } from '../suites/runtime-suite.js';

/** The agent's own logic over a fake Docker and a journal in a real file. */
export class TestHost {
  readonly clock = new ManualClock();
  readonly runtime = new FakeRuntime(this.clock);
  readonly observer = new Observer(this.runtime, this.clock, {
    runStart: (id) => this.journal.runStart(id),
    noteRunStart: (id, start) => this.journal.noteRunStart(id, start),
    startingSince: (id) => this.journal.startingSince(id),
    noteStarting: (id, at) => this.journal.noteStarting(id, at),
    forgetRunStart: (id) => this.journal.forgetRunStart(id),
  });
  /** Guarded ports that are open. */
  readonly guarded = new Map<number, GuardedPort & { owner: string }>();
  /** The access proxy cannot be told. */
  guardFails = false;
  /** Container ports at which something speaks. */
  readonly speaking = new Set<number>();
  /** What asks SSH servers for their host keys; by default there is none. */
  hostKeyAt = async (_port: number) => '';
  readonly guardedPorts = new GuardedPorts({
    portGuard: {
      scheme: 'http',
      set: async (instanceId, ports) => {
        if (this.guardFails) throw new Error('the access proxy is not connected');
        for (const [hostPort, { owner }] of this.guarded) if (owner === instanceId) this.guarded.delete(hostPort);
        for (const port of ports) this.guarded.set(port.hostPort, { ...port, owner: instanceId });
      },
      complete: () => undefined,
    },
    observer: this.observer,
    clock: this.clock,
    logger: silentLogger,
    addressOf: async () => '203.0.113.1',
    sshAnswers: () => this.runtime.sshAnswers(),
    hostKeyAt: (port) => this.hostKeyAt(port),
    answers: async (_, port) => this.speaking.has(port),
  });
  readonly gpus = new BusyGpus(2, 'test');
  readonly results: CommandResult[] = [];
  readonly reports: WorkloadReport[] = [];
  readonly progress: Progress[] = [];
  /** What was done in a process of its own. */
  readonly inIsolation: string[] = [];
  private readonly isolated: Remover = {
    find: (id) => this.runtime.find(id),
    stop: (id) => {
      this.inIsolation.push('stop');
      return this.runtime.stop(id);
    },
    remove: (id) => {
      this.inIsolation.push('remove');
      return this.runtime.remove(id);
    },
  };
  readonly canary = { answers: async () => true, obstacle: '' };
  /** How often a start that failed has asked for a test of the GPUs. */
  gpuTestsAsked = 0;
  dockerUp = true;
  /** When this run of Docker began. */
  dockerStartedAt = 0;
  dockerKeepsWorkloads = false;
  journal: Journal;
  executor: Executor;
  outages: OutageTracker;
  gpuAccess: GpuAccess;
  readonly docker: DockerWatch = {
    isAvailable: async () => this.dockerUp,
    startedAt: async () => this.dockerStartedAt,
    keepsWorkloads: async () => this.dockerKeepsWorkloads,
    events: (onEvent, signal) =>
      new Promise((resolve) => {
        this.dieEvents = () => (this.dockerUp ? onEvent('') : resolve());
        signal.addEventListener('abort', () => resolve());
      }),
  };
  readonly haltedRuns = new HaltedRunsInMemory();
  private readonly folder = mkdtempSync(join(tmpdir(), 'gpurent-agent-'));
  private readonly outbox = new Outbox((instanceId, message) => this.journal.runsFor(instanceId, message, this.clock));
  private watchers: Watcher[] = [];
  private dieEvents: () => void = () => {};

  constructor() {
    this.outbox.connect(({ message }) => {
      if (message?.$case === 'commandResult') this.results.push(message.value);
      if (message?.$case === 'workloadReport') this.reports.push(message.value);
      if (message?.$case === 'progress') this.progress.push(message.value);
      return true;
    });
    this.gpuAccess = new GpuAccess(this.gpus, this.runtime, this.clock);
    ({ journal: this.journal, executor: this.executor, outages: this.outages } = this.boot());
  }

  /** Deploys the workload `i`, with command number 1. */
  async provisioned(fields: Parameters<typeof specOf>[1] = {}): Promise<Command> {
    const command = await provision(this, 1, fields);
    this.executor.receive(command);
    await this.answered(command, 'DONE');
    return command;
  }

  /** The host boots: everything is down. */
  async boots(): Promise<void> {
    this.journal.setMeta('boot_id', 'the one before');
    await this.outages.noteBoot({ id: 'this one', at: 0 });
  }

  /** The agent's process has died and starts again; Docker has noticed nothing. */
  restart(): void {
    for (const watcher of this.watchers.splice(0)) watcher.stop();
    this.journal.close();
    this.gpuAccess = new GpuAccess(this.gpus, this.runtime, this.clock);
    ({ journal: this.journal, executor: this.executor, outages: this.outages } = this.boot());
  }

  /** Begins to watch. */
  watch(): Watcher {
    const { executor, journal, outbox, clock } = this;
    const paidTimes = new PaidTimes(journal, clock);
    const senses = { ...this.senses(), remover: this.recorded(this.runtime, journal), paidTimes };
    const watcher = new Watcher(senses, executor, journal, outbox, clock, silentLogger);
    this.guardedPorts.onLink = (instanceId) => watcher.reportLink(instanceId);
    this.watchers.push(watcher);
    watcher.start();
    return watcher;
  }

  /** Docker sends an event, or ends its stream when it is down. */
  emitEvent(): void {
    this.dieEvents();
  }

  async close(): Promise<void> {
    for (const watcher of this.watchers) watcher.stop();
    await this.executor.idle();
    this.journal.close();
    rmSync(this.folder, { recursive: true, force: true });
  }

  /** The outcomes answered to a command, in order. */
  outcomes({ commandId }: Command): string[] {
    const own = this.results.filter((result) => result.commandId === commandId);
    return own.map(({ outcome }) => CommandOutcome[outcome].replace('COMMAND_OUTCOME_', ''));
  }

  /** Waits until the command has got this outcome. */
  answered(command: Command, outcome: string): Promise<CommandResult> {
    return eventually(`${outcome} for the command`, () => {
      if (!this.outcomes(command).includes(outcome)) return undefined;
      return this.results.findLast((result) => result.commandId === command.commandId);
    });
  }

  /** The same, while time passes: an end is believed only after a while. */
  answeredInTime(command: Command, outcome: string): Promise<CommandResult> {
    return advanceUntil(`${outcome} for the command`, { clock: this.clock, stepMs: 500 }, () => {
      if (!this.outcomes(command).includes(outcome)) return undefined;
      return this.results.findLast((result) => result.commandId === command.commandId);
    });
  }

  private recorded(remover: Remover, journal: Journal): RunRecorder {
    return new RunRecorder(remover, journal, this.observer, this.clock);
  }

  private senses() {
    const { runtime, docker, outages, observer, guardedPorts, gpuAccess } = this;
    return { runtime, docker, outages, observer, guardedPorts, gpuAccess };
  }

  private boot(): { journal: Journal; executor: Executor; outages: OutageTracker } {
    const journal = new Journal(join(this.folder, 'journal.db'));
    const { runtime, gpus, gpuAccess, clock, outbox, observer, guardedPorts } = this;
    const outages = new OutageTracker(this.docker, runtime, journal, clock, this.haltedRuns);
    const hands = {
      runtime,
      remover: this.recorded(runtime, journal),
      isolated: this.recorded(this.isolated, journal),
      gpus,
      gpuAccess,
      outages,
      observer,
      guardedPorts,
      canary: this.canary,
      needs: NO_NEEDS,
      gpuTest: { obstacle: '', noteFailedStart: () => void this.gpuTestsAsked++ },
      journal,
      clock,
      logger: silentLogger,
      paced: new PacedLog(clock, silentLogger),
    };
    journal.countCrashes(false);
    const executor = new Executor(hands, journal, outbox);
    return { journal, executor, outages };
  }
}

let commands = 0;

function command(sequence: number, desired: Command['desired'], instanceId = 'i'): Command {
  return { commandId: `c${++commands}`, instanceId, sequence, desired, requestId: '', access: undefined };
}

export async function provision(
  host: TestHost,
  sequence: number,
  fields: Parameters<typeof specOf>[1] = {},
  instanceId = 'i',
) {
  const [gpu] = (await host.gpus.inventory()).gpus;
  const spec = specOf('image:1', { gpuUuids: [gpu?.uuid ?? ''], ...fields });
  return command(sequence, { $case: 'running', value: { mayCreate: true, spec } }, instanceId);
}

export async function start(host: TestHost, sequence: number): Promise<Command> {
  const { desired, ...identity } = await provision(host, sequence);
  if (desired?.$case !== 'running') throw new Error('not a running command');
  return { ...identity, desired: { ...desired, value: { ...desired.value, mayCreate: false } } };
}

export const stop = (sequence: number, releaseGpus = false): Command =>
  command(sequence, { $case: 'stopped', value: { releaseGpus } });
export const destroy = (sequence: number): Command => command(sequence, { $case: 'absent', value: {} });
export const keep = (sequence: number, access: Partial<Access> = {}): Command => ({
  ...command(sequence, { $case: 'kept', value: {} }),
  access: { revision: 1, tokenHash: 'new', sshAuthorizedKey: 'new', env: [], ...access },
});
