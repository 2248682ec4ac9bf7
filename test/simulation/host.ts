import { NO_NEEDS } from '../../agent/host/needs.js';
import { rmSync } from 'node:fs';
import { assembleAgent } from '../../agent/assemble.js';
import { Failure } from '../../agent/domain/failure.js';
import type { Gpu } from '../../agent/host/gpus/driver.js';
import { NO_PASSTHROUGH } from '../../agent/host/gpus/no-passthrough.js';
import { Journal } from '../../agent/journal/journal.js';
import { Inventory } from '../../shared/gen/gpurent/agent/v1/agent.js';
import { NO_UPGRADES } from '../../agent/upgrades/upgrades.js';
import { silentLogger } from '../../shared/logger.js';
import { fakeGpuUuid } from '../harness/fake-inventory.js';
import { HaltedRunsInMemory } from '../harness/halted-runs-in-memory.js';
import { SimDocker, SimRuntime, type DockerFaults } from './docker.js';
import type { Faults, Moment } from './faults.js';
import { idleGpus, instrumentsOf, type Habits } from './habits.js';
import type { Random } from './random.js';
import { ProcessHandle, SimClock, type Timeline } from './timeline.js';
import type { Network } from './wire.js';
import type { Witness } from './machine-view.js';

/** Thrown where a program is killed in the middle of something; what catches it can do no more harm. */
export class Crash extends Error {}

const RESTART_MS = 5_000;
const JOURNALLED = ['begin', 'noteRun', 'finish', 'report', 'remember', 'acknowledge'] as const;

export interface HostOptions {
  name: string;
  gpus: number;
  folder: string;
}

/** One machine: kernel, Docker, agent. Each can go away and come back. */
export class SimHost {
  readonly docker: SimDocker;
  readonly wall = { offset: 0 };
  machineId = '';
  credential = '';
  crashes = 0;
  agent = new ProcessHandle();
  /** How likely the agent is killed at a step of a command. */
  crashRate = 0;
  network: Network | undefined;
  private journal: Journal | undefined;
  private readonly haltedRuns = new HaltedRunsInMemory();
  private boots = 0;
  private poweredAt = 0;
  readonly gpus: Gpu[];

  constructor(
    readonly options: HostOptions,
    private readonly timeline: Timeline,
    private readonly random: Random,
    private readonly fate: Faults,
    faults: DockerFaults,
    private readonly witness: Witness,
    private readonly note: (what: string) => void,
    /** Undefined: the host measures nothing. */
    private readonly habits?: Habits,
  ) {
    const clock = new SimClock(timeline, new ProcessHandle(), this.wall);
    this.docker = new SimDocker(timeline, random, fate, faults, clock, witness, note);
    this.agent.alive = false;
    this.gpus = Array.from({ length: options.gpus }, (_, index) => ({
      uuid: fakeGpuUuid(Number(options.name.replace(/\D/g, '')), index),
      index,
      model: 'Simulated',
      memoryMb: 1_024,
      healthy: true,
      reason: '',
      processes: [],
      pciAddress: '',
    }));
  }

  get journalFile(): string {
    return `${this.options.folder}/${this.options.name}.journal`;
  }

  inventory(): Inventory {
    return {
      ...Inventory.fromPartial({}),
      name: this.options.name,
      region: 'simulated',
      publicAddress: '203.0.113.1',
      arch: 'x86_64',
      cpuModel: 'Simulated',
      cpuCores: 16,
      memoryMb: 65_536,
      diskGb: 500,
      diskQuota: 'enforced',
      driverVersion: '1',
      cudaVersion: '12.4',
      gpuReleaseSupported: true,
      accessReplaceable: true,
      gpus: this.gpus,
    };
  }

  startAgent(): void {
    if (this.agent.alive || !this.network) return;
    const life = new ProcessHandle();
    this.agent = life;
    const clock = new SimClock(this.timeline, life, this.wall);
    const runtime = new SimRuntime(this.docker, life, (moment, what) => this.mayCrash(life, moment, what));
    this.journal = new Journal(this.journalFile);
    const agent = assembleAgent({
      runtime,
      isolated: runtime,
      docker: runtime,
      canary: { answers: async () => true, obstacle: '' },
      needs: NO_NEEDS,
      gpuStarter: null,
      gpus: {
        inventory: async () => ({ gpus: this.gpus, driverVersion: '1', cudaVersion: '12.4' }),
        use: async () => idleGpus(this.gpus.map(({ uuid }) => uuid)),
        attachment: () => ({ env: [], deviceRequests: [] }),
        passthrough: NO_PASSTHROUGH,
      },
      dial: this.network.dialFor(life, this.credential),
      clock,
      random: () => this.random.fraction(),
      logger: silentLogger,
      journal: this.interrupted(this.journal, life),
      haltedRuns: this.haltedRuns,
      certificates: () => [],
      instruments: this.habits ? instrumentsOf(this.docker, this.habits) : null,
      checks: [],
      upgrades: NO_UPGRADES,
      upkeep: {},
      web: {
        portGuard: { scheme: 'http', set: async () => {}, complete: () => {} },
        addressOf: async () => '203.0.113.1',
        hostKeyAt: null,
        hostKeyFault: () => '',
        answers: async () => true,
      },
      prepare: async () => {
        if (!this.docker.up) throw new Failure('DOCKER_UNREACHABLE', 'Docker is down');
      },
      fail: () => this.crashAgent(life),
      describe: async () => this.inventory(),
      diskFreeGb: async () => {
        if (!this.docker.up) throw new Error('Docker is down');
        return 500;
      },
      boot: async () => ({ id: `boot-${this.boots}`, at: clock.now() - (this.timeline.now - this.poweredAt) }),
    });
    agent.start().catch(() => this.crashAgent(life));
  }

  /** kill -9, and systemd starts it again. */
  crashAgent(life = this.agent): void {
    if (!life.alive || life !== this.agent) return;
    life.alive = false;
    this.crashes += 1;
    this.journal?.close();
    this.network?.reap(false);
    this.timeline.schedule(this.machine, RESTART_MS, () => this.startAgent());
  }

  loseJournal(): void {
    this.crashAgent();
    this.witness.journalLost(this.options.name);
    for (const suffix of ['', '-wal', '-shm']) rmSync(this.journalFile + suffix, { force: true });
  }

  /** The kernel goes away and comes back after a while. */
  reboot(awayMs: number): void {
    this.docker.powerOff();
    const life = this.agent;
    if (life.alive) {
      life.alive = false;
      this.journal?.close();
    }
    this.machine.alive = false;
    this.machine = new ProcessHandle();
    this.network?.reap(false);
    this.timeline.schedule(this.machine, awayMs, () => {
      this.boots += 1;
      this.poweredAt = this.timeline.now;
      this.docker.startDaemon();
      this.startAgent();
    });
  }

  stop(): void {
    if (this.agent.alive) this.journal?.close();
    this.agent.alive = false;
    this.machine.alive = false;
  }

  private machine = new ProcessHandle();

  private mayCrash(life: ProcessHandle, moment: Moment, what: string): void {
    if (!life.alive || !this.fate.strikes(moment, this.crashRate)) return;
    this.note(`agent killed ${moment}: ${what}`);
    this.crashAgent(life);
  }

  private mayDie(life: ProcessHandle, moment: Moment, what: string): void {
    this.mayCrash(life, moment, what);
    if (!life.alive) throw new Crash('the agent was killed');
  }

  private tell(write: string, what: unknown): void {
    const command = what as { commandId: string; instanceId: string; sequence: number };
    if (write === 'begin') this.witness.begins(this.options.name, command);
    if (write === 'finish') this.witness.finishes(command);
  }

  /** Killed before a write it has not happened, after it it has. */
  private interrupted(journal: Journal, life: ProcessHandle): Journal {
    return new Proxy(journal, {
      get: (target, name: keyof Journal) => {
        const value: unknown = Reflect.get(target, name);
        if (typeof value !== 'function') return value;
        const method = (...args: unknown[]): unknown => Reflect.apply(value, target, args);
        if (!(JOURNALLED as readonly string[]).includes(name)) return method;
        return (...args: unknown[]) => {
          this.mayDie(life, 'before a journal write', name);
          const result = method(...args);
          this.tell(name, args[0]);
          this.mayDie(life, 'after a journal write', name);
          return result;
        };
      },
    });
  }
}
