import { sleep, type Clock } from '../../shared/clock.js';
import { Failure } from '../domain/failure.js';
import type { Gpu, GpuDriver } from '../host/gpus/driver.js';
import type { Runtime } from '../runtime/workload.js';

/** For so long a process that is ending may still show. */
const LINGER_MS = 5_000;
const POLL_MS = 500;

/** Guards that no GPU is ever in two workloads of this host, or in one and in something else. */
export class GpuAccess {
  /** Those that a workload is being given at this moment. */
  private readonly given = new Map<string, string>();
  /** How often that has changed. */
  private gives = 0;
  private tidying = false;
  /** Those that go back to the host at this moment. */
  private returning: { uuids: readonly string[]; done: Promise<void> } | undefined;

  constructor(
    private readonly gpus: GpuDriver,
    private readonly runtime: Runtime,
    private readonly clock: Clock,
  ) {}

  /** Throws Failure GPUS_UNAVAILABLE unless every one of them is there, healthy, and used by nobody else. */
  async check(instanceId: string, wanted: readonly string[]): Promise<void> {
    const [{ gpus: present }, workloads] = await Promise.all([this.gpus.inventory(), this.runtime.list()]);
    for (const uuid of wanted) {
      const gpu = present.find((candidate) => candidate.uuid === uuid);
      if (!gpu) throw unavailable(`the host no longer has the GPU ${uuid}`);
      if (!gpu.healthy) throw unavailable(`the GPU ${uuid} is not healthy: ${gpu.reason}`);
      const user = workloads.find(
        (other) => other.instanceId !== instanceId && other.state === 'running' && other.gpuUuids.includes(uuid),
      );
      if (user) throw unavailable(`the GPU ${uuid} is in use on the host`);
    }
    if (wanted.length > 0) await this.release(instanceId, wanted);
  }

  /**
   * Gives an instance GPUs by `work`, which brings its workload up, after a last check. Whoever else asks for one of them
   * meanwhile is refused, and as long as a call of Docker may still land.
   */
  async acquire(instanceId: string, wanted: readonly string[], work: () => Promise<void>): Promise<void> {
    if (wanted.some((uuid) => this.returning?.uuids.includes(uuid))) await this.returning?.done;
    for (const uuid of wanted) {
      const other = this.given.get(uuid);
      if (other !== undefined && other !== instanceId)
        throw unavailable(`the GPU ${uuid} is being given to another workload`);
    }
    for (const uuid of wanted) this.given.set(uuid, instanceId);
    this.gives++;
    try {
      await this.check(instanceId, wanted);
      await work();
    } finally {
      void this.runtime.whenIdle(instanceId).then(() => {
        for (const uuid of wanted) this.given.delete(uuid);
        this.gives++;
      });
    }
  }

  /**
   * Resolves when those that an instance had are with the host, and nothing computes on them any more. What others have by now
   * is theirs. Throws Failure GPUS_UNAVAILABLE naming what is in the way.
   */
  async release(instanceId: string, uuids: readonly string[]): Promise<void> {
    const own = await this.withoutOthers(instanceId, uuids);
    await this.gpus.passthrough.giveBack(own);
    const deadline = this.clock.monotonic() + LINGER_MS;
    for (;;) {
      const used = (await this.gpus.inventory()).gpus.find((gpu) => own.includes(gpu.uuid) && isUsed(gpu));
      if (!used) return;
      if (this.clock.monotonic() >= deadline)
        throw unavailable(`the GPU ${used.uuid} is still used by ${usersOf(used)}`);
      await sleep(this.clock, POLL_MS);
    }
  }

  /**
   * Gives the host back what is away for no virtual machine that runs, or that `isMeant` to. One look at a time: a GPU that does
   * not come back must hold up nothing.
   */
  async reclaim(isMeant: (instanceId: string) => boolean): Promise<void> {
    if (this.tidying) return;
    this.tidying = true;
    try {
      const uuids = await this.idle(isMeant);
      const done = this.gpus.passthrough.giveBack(uuids).finally(() => (this.returning = undefined));
      this.returning = { uuids, done: done.catch(() => undefined) };
      await done;
    } finally {
      this.tidying = false;
    }
  }

  private async idle(isMeant: (instanceId: string) => boolean): Promise<string[]> {
    const { gives } = this;
    const taken = await this.gpus.passthrough.taken();
    if (taken.length === 0) return [];
    const holders = (await this.runtime.list()).filter(
      ({ state, instanceId }) => state === 'running' || isMeant(instanceId),
    );
    const held = new Set([...this.given.keys(), ...holders.flatMap(({ gpuUuids }) => gpuUuids)]);
    // Whoever has been given one meanwhile may not have been seen: another look will do.
    return this.gives === gives ? taken.filter((uuid) => !held.has(uuid)) : [];
  }

  private async withoutOthers(instanceId: string, uuids: readonly string[]): Promise<string[]> {
    const isGiven = (uuid: string) => (this.given.get(uuid) ?? instanceId) !== instanceId;
    const before = uuids.filter((uuid) => !isGiven(uuid));
    const running = (await this.runtime.list()).filter(
      (other) => other.instanceId !== instanceId && other.state === 'running',
    );
    return before.filter((uuid) => !isGiven(uuid) && !running.some((other) => other.gpuUuids.includes(uuid)));
  }
}

/** Of one that is not healthy nothing is known for certain, and it is not rented anyway. */
function isUsed({ healthy, processes }: Gpu): boolean {
  return healthy && processes.length > 0;
}

function usersOf({ processes }: Gpu): string {
  return processes.map(({ pid, name }) => `process ${pid} (${name || 'unknown'})`).join(', ');
}

function unavailable(message: string): Failure {
  return new Failure('GPUS_UNAVAILABLE', message);
}
