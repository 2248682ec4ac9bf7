import { EventEmitter } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Agent } from '../../agent/assemble.js';
import { Journal } from '../../agent/journal/journal.js';
import { HaltedRunsFile } from '../../agent/host/halted-runs-file.js';
import type { GpuStarter } from '../../agent/gpu-test/gpu-test.js';
import type { Runtime } from '../../agent/runtime/workload.js';
import type { Check } from '../../agent/doctor/finding.js';
import type { Wire } from '../../agent/link/dial.js';
import type { Instruments } from '../../agent/measurements/measurements.js';
import { advanceUntil } from '../harness/advance-until.js';
import {
  ControlMessage,
  type AgentMessage,
  type Heartbeat,
  type Hello,
  type SequenceFloor,
} from '../../shared/gen/gpurent/agent/v1/agent.js';
import { silentLogger } from '../../shared/logger.js';
import { PROTOCOL_MAX } from '../../shared/protocol.js';
import { agentOnFakes } from '../harness/agent-on-fakes.js';
import { BusyGpus } from '../harness/busy-gpus.js';
import { FakeRuntime } from '../harness/fake-runtime.js';
import { INVENTORY } from '../harness/inventory.js';
import { ManualClock } from '../harness/manual-clock.js';

const HEARTBEAT_MS = 10_000;

/** The whole agent over a fake Docker, and a control plane that says what it is told to. */
export class AssembledHost {
  readonly clock = new ManualClock();
  readonly runtime = new FakeRuntime(this.clock);
  gpus = new BusyGpus(1, 'test');
  /** Another runtime than the fake one. */
  realRuntime: Runtime | undefined;
  gpuStarter: GpuStarter | null = null;
  readonly hellos: Hello[] = [];
  readonly beats: { at: number; heartbeat: Heartbeat }[] = [];
  /** Everything else that was said. */
  readonly said: NonNullable<AgentMessage['message']>[] = [];
  diskFreeGb: () => Promise<number> = async () => 100;
  describe = async () => ({ ...INVENTORY, gpus: (await this.gpus.inventory()).gpus });
  prepare: () => Promise<void> = async () => undefined;
  /** Why a start that has waited for Docker has failed. */
  failure: unknown;
  dockerAnswers: () => Promise<boolean> = async () => true;
  /** Its stream of events breaks, as that of a Docker that ends. */
  breakEvents: () => void = () => {};
  floors: SequenceFloor[] = [];
  /** Whether its control plane knows Hello.unseen. */
  takesUnseen = true;
  /** Whether it takes measurements; undefined: it is of the release before, which does not know of them. */
  takesMeasurements: boolean | undefined = true;
  instruments: Instruments | null = null;
  /** What its doctor checks. */
  checks: Check[] = [];
  /** Whether it takes findings; undefined: it is of the release before, which does not know of them. */
  takesFindings: boolean | undefined = true;
  journal: Journal;
  logger = silentLogger;
  /** Whether nothing answers where its control plane was. */
  isAway = false;
  agent: Agent | undefined;
  private wire: EventEmitter | undefined;
  private readonly folder = mkdtempSync(join(tmpdir(), 'gpurent-assembled-'));

  constructor() {
    this.journal = this.openJournal();
  }

  async start(): Promise<void> {
    const { gpus, gpuStarter, clock, journal, logger } = this;
    const runtime = this.realRuntime ?? this.runtime;
    const ways = { prepare: () => this.prepare(), fail: (error: unknown) => void (this.failure = error) };
    const { instruments, checks } = this;
    const haltedRuns = new HaltedRunsFile(join(this.folder, 'halted-runs.json'));
    const reads = { describe: () => this.describe(), diskFreeGb: () => this.diskFreeGb(), instruments, checks };
    this.agent = agentOnFakes(
      { runtime, gpus, gpuStarter, clock, journal, haltedRuns, logger, dial: () => this.dial(), ...reads, ...ways },
      {
        isAvailable: () => this.dockerAnswers(),
        events: () => new Promise((_, reject) => (this.breakEvents = () => reject(new Error('they ended')))),
      },
    );
    await this.agent.start();
  }

  /** Waits, while time passes. */
  inTime<T>(what: string, look: () => T | undefined): Promise<NonNullable<T>> {
    return advanceUntil(what, { clock: this.clock, stepMs: 500 }, look) as Promise<NonNullable<T>>;
  }

  /** The control plane goes away, and the agent dials again. */
  cut(): void {
    this.wire?.emit('end');
  }

  /** Connects the agent to a control plane that takes an unseen hello for a seen one; waits until it has read the welcome. */
  async meetOlderControlPlane(): Promise<void> {
    this.takesUnseen = false;
    this.cut();
    await this.inTime('the welcome of the older control plane', () => this.journal.meta('takes_unseen') === 'no');
  }

  send(message: NonNullable<ControlMessage['message']>): void {
    this.wire?.emit('data', { message });
  }

  async restart({ losesJournal = false } = {}): Promise<void> {
    await this.agent?.stop();
    if (losesJournal) rmSync(join(this.folder, 'journal.db'));
    this.journal = this.openJournal();
    await this.start();
  }

  async close(): Promise<void> {
    await this.agent?.stop();
    rmSync(this.folder, { recursive: true });
  }

  private openJournal(): Journal {
    return new Journal(join(this.folder, 'journal.db'));
  }

  private dial(): Wire {
    const wire: EventEmitter = Object.assign(new EventEmitter(), {
      cancel: () => undefined,
      write: ({ message }: AgentMessage) => {
        if (message?.$case === 'heartbeat') this.beats.push({ at: this.clock.monotonic(), heartbeat: message.value });
        else if (message?.$case === 'hello') this.greet(wire, message.value);
        else if (message) this.said.push(message);
        return true;
      },
    });
    this.wire = wire;
    return wire as unknown as Wire;
  }

  private greet(wire: EventEmitter, hello: Hello): void {
    if (this.isAway) {
      const refused = { code: 14, details: 'connect ECONNREFUSED 203.0.113.1:8090' };
      return void setImmediate(() => wire.emit('error', Object.assign(new Error('unavailable'), refused)));
    }
    this.hellos.push(hello);
    const value = {
      protocol: PROTOCOL_MAX,
      epoch: 1,
      incarnation: 'i',
      floors: this.floors,
      heartbeatMs: HEARTBEAT_MS,
      takesUnseen: this.takesUnseen,
      ...(this.takesFindings === undefined ? {} : { takesFindings: this.takesFindings }),
      ...(this.takesMeasurements === undefined ? {} : { takesMeasurements: this.takesMeasurements }),
    };
    setImmediate(() => wire.emit('data', { message: { $case: 'welcome', value } }));
  }
}
