import { withTimeout, type Clock, type Timer } from '../shared/clock.js';
import { messageOf } from '../shared/coded-error.js';
import type { Heartbeat, Hello, Welcome } from '../shared/gen/gpurent/agent/v1/agent.js';
import type { Logger } from '../shared/logger.js';
import type { PacedLog } from '../shared/paced-log.js';
import { PROTOCOL_MAX, PROTOCOL_MIN } from '../shared/protocol.js';
import { VERSION } from '../shared/version.js';
import { isDockerAway, troubleOf } from './domain/failure.js';
import type { GpuDriver } from './host/gpus/driver.js';
import type { Journal } from './journal/journal.js';
import type { Dial } from './link/dial.js';
import { Link, type Subscriber } from './link/link.js';
import { acceptWelcome, epochOf, instancesInJournal, mayBeUnseen } from './session.js';

const RETRY_MS = 5_000;
const GPUS_MS = 5_000;
const NEVER = new Promise<never>(() => undefined);

export interface UnseenParts {
  journal: Journal;
  gpus: GpuDriver;
  clock: Clock;
  dial: Dial;
  random: () => number;
  logger: Logger;
  paced: PacedLog;
  /** Of this boot of the host. */
  bootId: () => Promise<string>;
  /** Makes the host ready. Where Docker is away it rejects, and may be called again. */
  prepare: () => Promise<void>;
}

/**
 * An agent that starts while Docker does not answer: the host is connected and says so, so that its operator looks for the fault where
 * it is, and nobody is sent there. It does nothing that it is told: all of that is sent again once the host says hello by what it sees.
 */
export class UnseenStart implements Subscriber {
  readonly link: Link;
  private timer: Timer | undefined;
  private stopped = false;

  constructor(private readonly parts: UnseenParts) {
    const { dial, clock, random, logger, paced } = parts;
    this.link = new Link(dial, this, clock, random, logger, paced);
  }

  /** Whether the host is ready; false: Docker is away, and the control plane of this host understands that. Rejects otherwise. */
  async isReady(): Promise<boolean> {
    try {
      await this.parts.prepare();
      return true;
    } catch (error) {
      if (this.stopped) return NEVER;
      if (!isDockerAway(error) || !mayBeUnseen(this.parts.journal)) throw error;
      const message = `the agent waits to start: ${messageOf(error)}`;
      this.parts.paced.write('error', message, {}, troubleOf(error, message));
      return false;
    }
  }

  /** Connects, and resolves once the host is ready and the connection has ended, or never after a stop. Rejects as isReady. */
  async untilReady(): Promise<void> {
    this.link.start();
    do await new Promise<void>((resolve) => (this.timer = this.parts.clock.schedule(RETRY_MS, resolve)));
    while (!(await this.isReady()));
    this.link.stop();
    if (this.stopped) await NEVER;
    this.parts.logger.info('Docker answers: the agent begins');
  }

  stop(): void {
    this.stopped = true;
    this.timer?.cancel();
    this.link.stop();
  }

  async hello(): Promise<Hello> {
    const { journal, bootId } = this.parts;
    return {
      protocolMin: PROTOCOL_MIN,
      protocolMax: PROTOCOL_MAX,
      agentVersion: VERSION,
      bootId: await bootId(),
      inventory: undefined,
      instances: instancesInJournal(journal),
      unseen: true,
      heedsPaidTimes: true,
      ...epochOf(journal),
    };
  }

  /** Rejects where the GPUs cannot be read: that they were gone is not to be said. */
  async heartbeat(): Promise<Heartbeat> {
    const { gpus } = await withTimeout(this.parts.clock, GPUS_MS, this.parts.gpus.inventory(), () => {
      throw new Error('the GPUs cannot be read');
    });
    return { dockerAvailable: false, gpus, running: [], diskFreeGb: 0, obstacle: '' };
  }

  connected(welcome: Welcome): void {
    acceptWelcome(this.parts.journal, welcome);
  }

  disconnected(): void {
    // Nothing was begun.
  }

  receive(): void {
    // Whatever it is, it is sent again.
  }
}
