import { EventEmitter } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { assembleAgent, type Agent } from '../../agent/assemble.js';
import { Journal } from '../../agent/journal/journal.js';
import type { Wire } from '../../agent/link/dial.js';
import type { AgentMessage, Heartbeat, Hello } from '../../shared/gen/gpurent/agent/v1/agent.js';
import { silentLogger } from '../../shared/logger.js';
import { PROTOCOL_MAX } from '../../shared/protocol.js';
import { BusyGpus } from '../harness/busy-gpus.js';
import { FakeRuntime } from '../harness/fake-runtime.js';
import { INVENTORY } from '../harness/inventory.js';
import { ManualClock } from '../harness/manual-clock.js';

const HEARTBEAT_MS = 10_000;

/** All of an agent on a fake Docker, and a control plane that welcomes it and says nothing more. */
export class WholeAgent {
  readonly clock = new ManualClock();
  readonly runtime = new FakeRuntime(this.clock);
  readonly hellos: Hello[] = [];
  readonly beats: { at: number; heartbeat: Heartbeat }[] = [];
  diskFreeGb: () => Promise<number> = async () => 100;
  private readonly folder = mkdtempSync(join(tmpdir(), 'gpurent-whole-'));
  readonly journal = new Journal(join(this.folder, 'journal.db'));
  private readonly agent: Agent;

  constructor() {
    const { clock, runtime, journal } = this;
    const gpus = new BusyGpus(1, 'test');
    this.agent = assembleAgent({
      runtime,
      isolated: runtime,
      docker: {
        isAvailable: async () => true,
        startedAt: async () => 0,
        keepsWorkloads: async () => false,
        events: () => new Promise(() => {}),
      },
      canary: { answers: async () => true, obstacle: '' },
      gpus,
      dial: () => this.dial(),
      clock,
      random: () => 0.5,
      logger: silentLogger,
      journal,
      web: {
        portGuard: { scheme: 'http', set: async () => {}, complete: () => {} },
        addressOf: async () => '',
        answers: async () => true,
      },
      upkeep: {},
      prepare: async () => {},
      describe: async () => ({ ...INVENTORY, gpus: (await gpus.inventory()).gpus }),
      diskFreeGb: () => this.diskFreeGb(),
      boot: async () => ({ id: 'b', at: 0 }),
    });
  }

  start(): Promise<void> {
    return this.agent.start();
  }

  async close(): Promise<void> {
    await this.agent.stop();
    rmSync(this.folder, { recursive: true });
  }

  private dial(): Wire {
    const wire = Object.assign(new EventEmitter(), {
      cancel: () => undefined,
      write: ({ message }: AgentMessage) => {
        if (message?.$case === 'heartbeat') this.beats.push({ at: this.clock.monotonic(), heartbeat: message.value });
        if (message?.$case !== 'hello') return true;
        this.hellos.push(message.value);
        const value = { protocol: PROTOCOL_MAX, epoch: 1, incarnation: 'i', floors: [], heartbeatMs: HEARTBEAT_MS };
        setImmediate(() => wire.emit('data', { message: { $case: 'welcome', value } }));
        return true;
      },
    });
    return wire as unknown as Wire;
  }
}
