import { randomBytes, randomUUID } from 'node:crypto';
import { sleep, type Clock } from '../../shared/clock.js';
import { messageOf } from '../../shared/coded-error.js';
import { WorkloadSpec } from '../../shared/gen/gpurent/agent/v1/agent.js';
import type { Logger } from '../../shared/logger.js';
import { PacedLog } from '../../shared/paced-log.js';
import type { Runtime } from '../runtime/workload.js';

/** How long its SSH may take to answer once it is up. A sound host takes a fraction of a second. */
const ANSWER_MS = 5_000;
const POLL_MS = 200;
/** A good verdict holds for so long: whoever makes SSH silent does not make this host start containers all day. */
const VALID_MS = 10_000;
/** While so many earlier ones are still to be removed, no further one is made. */
const MOST_LEFT = 3;
const SILENT = 'SSH of this host does not answer, also not that of a test workload of its own';

/** Where the canary lives: workloads that are none of any instance. */
export type CanaryRuntime = Pick<Runtime, 'list' | 'create' | 'find' | 'remove' | 'sshAnswers'> & {
  prepare(): Promise<void>;
};

/**
 * A small workload of the agent's own, made as those of renters are, whose SSH tells whether a silent one is silent by itself or
 * because of its host. While it is silent, too, the host takes nothing new.
 */
export class Canary {
  private isSilent = false;
  private trying: Promise<boolean> | undefined;
  private goodUntil = -Infinity;
  /** Those that are being removed. */
  private readonly leaving = new Set<string>();

  constructor(
    private readonly runtime: CanaryRuntime,
    /** Makes the image that it runs, unless it is there, and answers its name. */
    private readonly image: () => Promise<string>,
    private readonly clock: Clock,
    logger: Logger,
    private readonly paced = new PacedLog(clock, logger),
  ) {}

  /** Why this host takes nothing new; empty: it does. */
  get obstacle(): string {
    return this.isSilent ? SILENT : '';
  }

  /** Removes what a crash has left of it. */
  async prepare(): Promise<void> {
    for (const { instanceId } of await this.runtime.list()) await this.runtime.remove(instanceId);
    await this.runtime.prepare();
  }

  /** Whether its SSH answers, as far as that can be found out: one that cannot be made says nothing against its host. */
  answers(): Promise<boolean> {
    if (this.clock.monotonic() < this.goodUntil) return Promise.resolve(true);
    this.trying ??= this.judge().finally(() => (this.trying = undefined));
    return this.trying;
  }

  /** Looks again after it was silent. */
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
      this.paced.write('warn', `the test workload of this host could not be made: ${messageOf(error)}`);
      return true;
    } finally {
      this.drop(instanceId);
    }
  }

  /** Has earlier ones removed that are still there. Throws where these are too many. */
  private async requireRoom(): Promise<void> {
    const left = await this.runtime.list();
    for (const { instanceId } of left) this.drop(instanceId);
    if (left.length >= MOST_LEFT) throw new Error(`${left.length} earlier ones are still there`);
  }

  /** Not waited for: nobody's start hangs on a removal. */
  private drop(instanceId: string): void {
    if (this.leaving.has(instanceId)) return;
    this.leaving.add(instanceId);
    void this.runtime
      .remove(instanceId)
      .catch((error: unknown) => this.paced.write('warn', `the test workload stays: ${messageOf(error)}`))
      .finally(() => this.leaving.delete(instanceId));
  }

  private async isReached(instanceId: string): Promise<boolean> {
    const workload = await this.runtime.find(instanceId);
    if (workload.state !== 'running' || workload.sshPort === null) throw new Error('it has ended at once');
    const deadline = this.clock.monotonic() + ANSWER_MS;
    while (!(await this.runtime.sshAnswers(workload.sshPort))) {
      if (this.clock.monotonic() >= deadline) return false;
      await sleep(this.clock, POLL_MS);
    }
    return true;
  }
}

/** Its key is nobody's. */
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
