import { withTimeout, type Clock } from '../../../shared/clock.js';
import type { EarlierHost } from '../../../shared/gen/gpurent/agent/v1/agent.js';
import type { LeftWorkload } from '../../domain/left-behind.js';
import type { GpuDriver, GpuInventory } from '../../host/gpus/driver.js';
import { DEADLINE_MS, type Engine } from './engine.js';
import { CANARY_OF, LABEL, traitsOf } from './labels.js';

/** Most earlier hosts that an enrollment reports. */
const MOST_TOLD = 64;
const LOOK_MS = 2_000;

interface Foreign extends LeftWorkload {
  gpuUuids: string[];
}

/**
 * Returns the other hosts that have workloads in this Docker, with their numbers of workloads. `hostId`: this host;
 * null: all count.
 */
export async function earlierHosts(engine: Engine, hostId: string | null): Promise<EarlierHost[]> {
  const counts = new Map<string, number>();
  for (const each of await foreignWorkloads(engine, hostId))
    counts.set(each.hostId, (counts.get(each.hostId) ?? 0) + 1);
  return [...counts].slice(0, MOST_TOLD).map(([id, workloads]) => ({ hostId: id, workloads }));
}

/**
 * Reports GPUs as unhealthy if a running workload of another host of the same Docker uses them. That other host is this
 * computer under an identity that it has lost.
 */
export class UnclaimedGpus implements GpuDriver {
  readonly passthrough: GpuDriver['passthrough'];
  /** From the last look: the host must report its GPUs even if Docker does not answer. */
  private foreign: Foreign[] = [];

  constructor(
    private readonly gpus: GpuDriver,
    private readonly engine: Engine,
    private readonly hostId: string,
    private readonly clock: Clock,
  ) {
    this.passthrough = gpus.passthrough;
  }

  async inventory(): Promise<GpuInventory> {
    const inventory = await this.gpus.inventory();
    const look = foreignWorkloads(this.engine, this.hostId);
    this.foreign = await withTimeout(this.clock, LOOK_MS, look, () => this.foreign).catch(() => this.foreign);
    const running = this.foreign.filter(({ isRunning }) => isRunning);
    const gpus = inventory.gpus.map((gpu) => {
      const user = running.find(({ gpuUuids }) => gpuUuids.includes(gpu.uuid));
      return user && gpu.healthy ? { ...gpu, healthy: false, reason: heldBy(user) } : gpu;
    });
    return { ...inventory, gpus };
  }

  use(): ReturnType<GpuDriver['use']> {
    return this.gpus.use();
  }

  attachment(uuids: readonly string[]): ReturnType<GpuDriver['attachment']> {
    return this.gpus.attachment(uuids);
  }
}

function heldBy({ container, hostId }: Foreign): string {
  return `the container ${container}, which this host has made as machine ${hostId}, has it: where that machine was not removed, enroll with a token of it; else remove the container, with its renter's disk ("docker rm --force --volumes ${container}")`;
}

/** Returns the workloads in this Docker that belong to other hosts than `hostId`; null: all workloads. */
export async function foreignWorkloads(engine: Engine, hostId: string | null): Promise<Foreign[]> {
  const containers = await engine.call('list containers', DEADLINE_MS.inspect, (docker) =>
    docker.listContainers({ all: true, filters: { label: [LABEL.host, LABEL.instance] } }),
  );
  return containers
    .map(({ Labels, State, Names, Id }) => ({
      hostId: Labels[LABEL.host] ?? '',
      container: Names[0]?.replace(/^\//, '') ?? Id,
      isRunning: ['running', 'restarting', 'paused'].includes(State),
      gpuUuids: traitsOf(Labels).gpuUuids,
    }))
    .filter((each) => each.hostId !== hostId && !each.hostId.startsWith(CANARY_OF));
}
