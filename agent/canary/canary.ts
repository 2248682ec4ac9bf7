import { randomBytes, randomUUID } from 'node:crypto';
import { sleep, type Clock } from '../../shared/clock.js';
import { messageOf } from '../../shared/coded-error.js';
import { WorkloadSpec } from '../../shared/gen/gpurent/agent/v1/agent.js';
import type { Logger } from '../../shared/logger.js';
import { PacedLog } from '../../shared/paced-log.js';
import type { Runtime } from '../runtime/workload.js';

/**
 * How long SSH of the canary may take to answer. On a healthy host it takes a fraction of a second, but seconds while the host starts
 * dozens of workloads at once. Nothing is charged meanwhile.
 */
const ANSWER_MS = 20_000;
const POLL_MS = 200;
/** How long a good verdict holds. It bounds how many containers a renter with a silent SSH can make this host start. */
const VALID_MS = 10_000;
/** While this many earlier canaries are still to be removed, no further one is made. */
const MOST_LEFT = 3;
const SILENT = 'SSH to workloads on this host does not answer, not even to a test workload of the agent';

/** Runs the canary's workloads, which belong to no instance. */
export type CanaryRuntime = Pick<Runtime, 'list' | 'create' | 'find' | 'remove' | 'sshAnswers'> & {
  prepare(): Promise<void>;
};

/**
 * Runs a small workload of the agent's own, made like those of renters, to tell whether a silent SSH is the fault of the
 * workload or of the host. While the canary is silent too, the host takes nothing new.
 */
export class Canary {
  private isSilent = false;
  private trying: Promise<boolean> | undefined;
  private goodUntil = -Infinity;
  /** Canaries that are being removed. */
  private readonly leaving = new Set<string>();

  constructor(
    private readonly runtime: CanaryRuntime,
    /** Makes the image of the canary unless it exists. Resolves to its name. */
    private readonly image: () => Promise<string>,
    private readonly clock: Clock,
    logger: Logger,
    private readonly paced = new PacedLog(clock, logger),
  ) {}

  /** Why this host takes nothing new; empty when it does. */
  get obstacle(): string {
    return this.isSilent ? SILENT : '';
  }

  /** Removes canaries that a crash has left. */
  async prepare(): Promise<void> {
    for (const { instanceId } of await this.runtime.list()) await this.runtime.remove(instanceId);
    await this.runtime.prepare();
  }

  /**
   * Tells whether SSH of the canary answers. A canary that cannot be made is no evidence against the host, and counts as
   * answering.
   */
  answers(): Promise<boolean> {
    if (this.clock.monotonic() < this.goodUntil) return Promise.resolve(true);
    this.trying ??= this.judge().finally(() => (this.trying = undefined));
    return this.trying;
  }

  /** Tries again where the last canary was silent. */
  async lookAgain(): Promise<void> {
    if (this.isSilent) await this.answers();
  }

  private async judge(): Promise<boolean> {
    const instanceId = randomUUID();
    try {
      await this.requireRoom();
      await this.runtime.create(instanceId, 1, specOf(await this.image()));
      const answers = await this.isReached(instanceId);
      if (answers) this.goodUntil = this.clock.monotonic() + VALID_MS;
      else this.paced.write('error', SILENT);
      this.isSilent = !answers;
      return answers;
    } catch (error) {
      this.paced.write('warn', `cannot make a test workload: ${messageOf(error)}`);
      return true;
    } finally {
      this.drop(instanceId);
    }
  }

  /** Begins to remove earlier canaries. Throws where there are too many. */
  private async requireRoom(): Promise<void> {
    const left = await this.runtime.list();
    for (const { instanceId } of left) this.drop(instanceId);
    if (left.length >= MOST_LEFT) throw new Error(`${left.length} earlier test workloads are still to be removed`);
  }

  /** Begins to remove a canary. Not awaited: no start must wait for a removal. */
  private drop(instanceId: string): void {
    if (this.leaving.has(instanceId)) return;
    this.leaving.add(instanceId);
    void this.runtime
      .remove(instanceId)
      .catch((error: unknown) => this.paced.write('warn', `cannot remove a test workload: ${messageOf(error)}`))
      .finally(() => this.leaving.delete(instanceId));
  }

  private async isReached(instanceId: string): Promise<boolean> {
    const workload = await this.runtime.find(instanceId);
    if (workload.state !== 'running' || workload.sshPort === null) throw new Error('it ended at once');
    const deadline = this.clock.monotonic() + ANSWER_MS;
    while (!(await this.runtime.sshAnswers(workload.sshPort))) {
      if (this.clock.monotonic() >= deadline) return false;
      await sleep(this.clock, POLL_MS);
    }
    return true;
  }
}

/** Returns the spec of a canary, with a random SSH key of which nobody has the private part. */
function specOf(image: string): WorkloadSpec {
  const type = Buffer.from('ssh-ed25519');
  const sized = (part: Buffer) => Buffer.concat([Buffer.from([0, 0, 0, part.length]), part]);
  const key = Buffer.concat([sized(type), sized(randomBytes(32))]).toString('base64');
  return WorkloadSpec.fromPartial({
    image,
    interactive: true,
    sshUser: 'root',
    sshAuthorizedKey: `ssh-ed25519 ${key}`,
    diskGb: 1,
    cpuMillis: 1_000,
    memoryMb: 128,
  });
}
