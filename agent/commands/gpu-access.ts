import { sleep, withTimeout, type Clock } from '../../shared/clock.js';
import { Failure } from '../domain/failure.js';
import type { Gpu, GpuDriver } from '../host/gpus/driver.js';
import type { Runtime } from '../runtime/workload.js';

/** How long a process that is ending can still be listed on its GPU. */
const LINGER_MS = 5_000;
const POLL_MS = 500;
/** How long a start of a renter waits at most for a GPU that is borrowed. */
const MOST_LENT_MS = 20_000;

/** Ensures that no GPU is used by two workloads of this host, or by a workload and another process. */
export class GpuAccess {
  /** Per GPU, the instance that is acquiring it at this moment. */
  private readonly given = new Map<string, string>();
  /** How often `given` has changed. */
  private gives = 0;
  private tidying = false;
  /** Instances that are stopped and whose GPUs others can have. */
  private readonly released = new Set<string>();
  /** The GPU that a test of this host has at this moment. */
  private lent: { uuid: string; over: Promise<void> } | undefined;
  /** The GPUs that VFIO is returning to the host at this moment. */
  private returning: { uuids: readonly string[]; done: Promise<void> } | undefined;

  constructor(
    private readonly gpus: GpuDriver,
    private readonly runtime: Runtime,
    private readonly clock: Clock,
  ) {}

  /** Throws Failure GPUS_UNAVAILABLE unless every wanted GPU is present, healthy and unused by others. */
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
   * Checks the GPUs once more and runs `work`, which starts the workload of the instance with them. Until `work` has ended and no
   * Docker call of the instance can still take effect, other instances that acquire one of these GPUs get GPUS_UNAVAILABLE.
   */
  async acquire(instanceId: string, wanted: readonly string[], work: () => Promise<void>): Promise<void> {
    if (wanted.some((uuid) => this.returning?.uuids.includes(uuid))) await this.returning?.done;
    while (this.lent && wanted.includes(this.lent.uuid)) await this.lent.over;
    this.released.delete(instanceId);
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
   * Runs `work` with a healthy GPU that no process uses, no virtual machine has, and no instance holds or claims, as far as this host
   * knows. Instances that acquire it meanwhile wait until `work` has ended, 20 seconds at most. Resolves to undefined if there is none.
   */
  async borrow<T>(work: (uuid: string) => Promise<T>): Promise<T | undefined> {
    const { gives } = this;
    const [{ gpus }, taken, workloads] = await Promise.all([
      this.gpus.inventory(),
      this.gpus.passthrough.taken(),
      this.runtime.list(),
    ]);
    for (const id of this.released)
      if (!workloads.some(({ instanceId }) => instanceId === id)) this.released.delete(id);
    const holders = workloads.filter(({ state, instanceId }) => state !== 'stopped' || !this.released.has(instanceId));
    const held = new Set([...this.given.keys(), ...taken, ...holders.flatMap(({ gpuUuids }) => gpuUuids)]);
    const free = gpus.find((gpu) => gpu.healthy && gpu.processes.length === 0 && !held.has(gpu.uuid));
    // An instance that has acquired a GPU meanwhile can be missing in `workloads`.
    if (!free || this.gives !== gives || this.lent) return undefined;
    const done = work(free.uuid);
    const ended = done.then(
      () => undefined,
      () => undefined,
    );
    const over = withTimeout(this.clock, MOST_LENT_MS, ended, () => undefined).then(() => (this.lent = undefined));
    this.lent = { uuid: free.uuid, over: over.then(() => undefined) };
    return done;
  }

  /** Takes note that an instance is stopped, and that its GPUs were released for others. */
  noteReleased(instanceId: string): void {
    this.released.add(instanceId);
  }

  /**
   * Returns the GPUs of an instance to the host, and resolves when no process uses them. Leaves out GPUs that another instance has
   * by now. Throws Failure GPUS_UNAVAILABLE that names the obstacle.
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
   * Returns to the host all passed-through GPUs without a virtual machine that runs or, by `isMeant`, should run. Does nothing while
   * an earlier call runs: a GPU that does not come back must not block anything.
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
    // An instance that has acquired a GPU meanwhile can be missing in `holders`. The next call reclaims the GPUs.
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

/** Tells whether processes use a GPU. False for an unhealthy GPU: its processes are not reliable, and it is not rented. */
function isUsed({ healthy, processes }: Gpu): boolean {
  return healthy && processes.length > 0;
}

function usersOf({ processes }: Gpu): string {
  return processes.map(({ pid, name }) => `process ${pid} (${name || 'unknown'})`).join(', ');
}

function unavailable(message: string): Failure {
  return new Failure('GPUS_UNAVAILABLE', message);
}
