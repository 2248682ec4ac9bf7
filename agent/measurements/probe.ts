import { unmeasured, type GpuUse, type Use } from '../../shared/measurement.js';
import type { GpuReading } from '../host/gpus/driver.js';
import type { LocatedWorkload } from '../runtime/workload.js';
import type { Accounts } from './accounts.js';
import type { DiskUse } from './disk-use.js';

type Counters = Pick<Accounts, 'cpuUs' | 'networkInBytes' | 'networkOutBytes' | 'connectionsOpened'>;

/** Measures one run of a workload: makes uses of a span out of counters that rise. */
export class Probe {
  private before: (Counters & { at: number }) | undefined;
  /** As of the last look; null: not measured. */
  disk: DiskUse | null = null;

  constructor(readonly located: LocatedWorkload) {}

  /** Returns what was used since the last call. `gpus`: by UUID, in the order of their indexes; `at`: in monotonic milliseconds. */
  measure(at: number, accounts: Accounts | undefined, gpus: ReadonlyMap<string, GpuReading>): Use {
    const { gpuUuids } = this.located.workload;
    const use: Use = {
      ...unmeasured(0),
      gpus: inOrder(gpuUuids, gpus).map((uuid) => gpuUseOf(gpus.get(uuid))),
      diskUsedBytes: this.disk?.usedBytes ?? null,
      diskLimitBytes: this.disk?.limitBytes ?? null,
    };
    if (!accounts) return use;
    const { before } = this;
    this.before = { ...accounts, at };
    const since = (name: keyof Counters) => risen(before?.[name], accounts[name]);
    const cpuUs = since('cpuUs');
    const ms = before ? at - before.at : 0;
    const cpuMillis = cpuUs === null || ms <= 0 ? null : Math.round(cpuUs / ms);
    const { cpuLimitMillis, memoryUsedBytes, memoryLimitBytes, sshSessions, portConnections } = accounts;
    return {
      ...use,
      cpuMillis,
      cpuMaxMillis: cpuMillis,
      cpuLimitMillis,
      memoryUsedBytes,
      memoryLimitBytes,
      networkInBytes: since('networkInBytes'),
      networkOutBytes: since('networkOutBytes'),
      sshSessions,
      portConnections,
      connectionsOpened: since('connectionsOpened'),
    };
  }
}

/** Returns by how much a counter has risen; null if that is not known, or if it has begun anew. */
function risen(before: number | null | undefined, now: number | null): number | null {
  return before === undefined || before === null || now === null || now < before ? null : now - before;
}

/** Returns the UUIDs in the order of the GPUs on the host; those that the driver does not show come last. */
function inOrder(uuids: readonly string[], gpus: ReadonlyMap<string, GpuReading>): string[] {
  const position = new Map([...gpus.keys()].map((uuid, index) => [uuid, index]));
  const of = (uuid: string) => position.get(uuid) ?? Number.MAX_SAFE_INTEGER;
  return [...uuids].sort((one, other) => of(one) - of(other));
}

function gpuUseOf(gpu: GpuReading | undefined): GpuUse {
  const { usePercent = null, memoryUsedBytes = null, memoryTotalBytes = null } = gpu ?? {};
  const { powerWatts = null, temperatureCelsius = null } = gpu ?? {};
  return { usePercent, useMaxPercent: usePercent, memoryUsedBytes, memoryTotalBytes, powerWatts, temperatureCelsius };
}
