import { MINUTE_MS } from '../../shared/time.js';
import type { GpuReading } from '../../agent/host/gpus/driver.js';
import type { Instruments } from '../../agent/measurements/measurements.js';
import type { Workload } from '../../agent/runtime/workload.js';
import type { SimDocker } from './docker.js';

const BLOCK_MS = 4 * MINUTE_MS;
const HABITS = ['unmeasured', 'used', 'used', 'idle', 'idle', 'idle', 'idle', 'idle'] as const;

/** What people do with their instances, in true time: what a host measures, and what an idle stop must go by. */
export class Habits {
  /** From then on, nobody uses anything. */
  quietFrom = Infinity;

  constructor(private readonly seed: number) {}

  of(instanceId: string, at: number): (typeof HABITS)[number] {
    if (at >= this.quietFrom) return 'idle';
    let hash = this.seed;
    for (const letter of `${instanceId} ${Math.floor(at / BLOCK_MS)}`)
      hash = Math.imul(hash ^ letter.charCodeAt(0), 16_777_619);
    return HABITS[(hash >>> 13) % HABITS.length] ?? 'idle';
  }
}

/** The GPUs of a host, which nobody uses. */
export function idleGpus(uuids: readonly string[]): ReadonlyMap<string, GpuReading> {
  const nothing = { memoryUsedBytes: null, memoryTotalBytes: null, powerWatts: null, temperatureCelsius: null };
  return new Map(uuids.map((uuid) => [uuid, { usePercent: 0, ...nothing }]));
}

/** What a simulated host can look at. */
export function instrumentsOf(docker: SimDocker, habits: Habits): Instruments {
  const stateOf = (instanceId: string): Workload | undefined => docker.containers.get(instanceId)?.workload;
  return {
    locate: async (instanceId) => {
      const workload = stateOf(instanceId);
      if (workload?.state !== 'running') return undefined;
      return { workload, pid: 1, containerId: instanceId, sshContainerPort: null, disk: null };
    },
    accounts: ({ workload }) => {
      const { instanceId } = workload;
      // Another run is another object.
      if (stateOf(instanceId) !== workload) return undefined;
      const habit = habits.of(instanceId, docker.timeline.now);
      return {
        cpuUs: 0,
        cpuLimitMillis: 1e3,
        memoryUsedBytes: null,
        memoryLimitBytes: null,
        networkInBytes: null,
        networkOutBytes: null,
        portConnections: 0,
        connectionsOpened: 0,
        sshSessions: habit === 'unmeasured' ? null : Number(habit === 'used'),
      };
    },
    diskUse: async () => null,
  };
}
