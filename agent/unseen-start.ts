import { withTimeout, type Clock, type Timer } from '../shared/clock.js';
import { messageOf } from '../shared/coded-error.js';
import type { Heartbeat, Hello, Welcome } from '../shared/gen/gpurent/agent/v1/agent.js';
import type { Logger } from '../shared/logger.js';
import type { PacedLog } from '../shared/paced-log.js';
import { PROTOCOL_MAX, PROTOCOL_MIN } from '../shared/protocol.js';
import { VERSION } from '../shared/version.js';
import { isDockerAway, troubleOf } from './domain/failure.js';
import type { FindingReports } from './doctor/finding-reports.js';
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
  findings: Pick<FindingReports, 'areMade'>;
  /** Returns the boot id of the host. */
  bootId: () => Promise<string>;
  /** Prepares the host. Rejects while Docker does not answer, and can then be called again. */
  prepare: () => Promise<void>;
}

/**
 * The start of an agent while Docker does not answer. The agent connects and reports that, so that the operator sees the fault and
 * no new instance is placed there. It ignores all commands; the control plane sends them again after a hello that is not `unseen`.
 */
export class UnseenStart implements Subscriber {
  readonly link: Link;
  private timer: Timer | undefined;
  private stopped = false;
  /** Why the host is not ready. */
  private reason = '';

  constructor(private readonly parts: UnseenParts) {
    const { dial, clock, random, logger, paced } = parts;
    this.link = new Link(dial, this, clock, random, logger, paced);
  }

  /** Tells whether the host is ready. False: Docker does not answer, and the control plane understands `unseen`. Rejects otherwise. */
  async isReady(): Promise<boolean> {
    try {
      await this.parts.prepare();
      return true;
    } catch (error) {
      if (this.stopped) return NEVER;
      if (!isDockerAway(error) || !mayBeUnseen(this.parts.journal)) throw error;
      this.reason = messageOf(error);
      const message = `the agent waits for Docker before it starts: ${this.reason}`;
      this.parts.paced.write('error', message, {}, troubleOf(error, message));
      return false;
    }
  }

  /** Connects, and resolves once the host is ready and the connection is closed. Never resolves after a stop. Rejects as `isReady`. */
  async untilReady(): Promise<void> {
    this.link.start();
    do await new Promise<void>((resolve) => (this.timer = this.parts.clock.schedule(RETRY_MS, resolve)));
    while (!(await this.isReady()));
    this.link.stop();
    if (this.stopped) await NEVER;
    this.parts.logger.info('Docker answers: the agent starts');
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
      answersMeasurementQueries: false,
      reportsFindings: this.parts.findings.areMade,
      takesUpgrades: false,
      ...epochOf(journal),
    };
  }

  /** Rejects if the GPUs cannot be read, because an empty list would report them as missing. */
  async heartbeat(): Promise<Omit<Heartbeat, 'atMs'>> {
    const { gpus } = await withTimeout(this.parts.clock, GPUS_MS, this.parts.gpus.inventory(), () => {
      throw new Error('the GPUs cannot be read in time');
    });
    return {
      dockerAvailable: false,
      gpus,
      running: [],
      diskFreeGb: 0,
      obstacle: this.reason,
      dockerAheadMs: undefined,
    };
  }

  connected(welcome: Welcome): void {
    acceptWelcome(this.parts.journal, welcome);
  }

  disconnected(): void {
    // Nothing has started.
  }

  receive(): void {
    // The control plane sends every message again.
  }
}
