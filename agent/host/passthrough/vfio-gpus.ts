import { sleep, withTimeout, type Clock } from '../../../shared/clock.js';
import { messageOf } from '../../../shared/coded-error.js';
import { Failure } from '../../domain/failure.js';
import {
  VFIO,
  planPassthrough,
  returnSteps,
  slotOf,
  takeSteps,
  type PassthroughPlan,
  type SysfsWrite,
} from '../../domain/passthrough.js';
import type {
  Gpu,
  GpuAttachment,
  GpuDriver,
  GpuInventory,
  GpuReading,
  PassedDevices,
  Passthrough,
} from '../gpus/driver.js';
import type { GpuStateFile } from './gpu-state-file.js';
import type { PciBus } from './pci-bus.js';

const WRITE_MS = 30_000;
const HELD_MS = 10_000;
const RETURN_MS = 30_000;
const POLL_MS = 500;
/** The most that the control plane takes of one host. */
const MOST_GPUS = 64;
const NOT_LISTED = 'its driver no longer lists it: reboot the host, then look at its slot and power';
const VFIO_CONTROL = '/dev/vfio/vfio';

/** The GPUs of the host's driver. */
export type HostGpus = Omit<GpuDriver, 'passthrough'> & {
  /** Switches persistence mode off, because it keeps an unused GPU open; `restorePersistence` switches it on again if it was on. */
  disablePersistence(uuid: string): Promise<void>;
  restorePersistence(uuid: string): Promise<void>;
};

export interface VfioHost {
  gpus: HostGpus;
  bus: PciBus;
  notes: GpuStateFile;
  /** Returns the ids of processes that have a GPU of these slots open. Throws if it cannot find out. */
  holders: (slots: readonly string[]) => Promise<number[]>;
  /** The user id that QEMU runs as. */
  runnerId: number;
  clock: Clock;
}

/**
 * GPUs that either the host's driver or vfio-pci has, for a virtual machine. A GPU that is away stays in the inventory, because it is
 * rented. A GPU that does not come back is unhealthy until it does.
 */
export class VfioGpus implements GpuDriver {
  readonly passthrough: Passthrough;
  /** By UUID, why a GPU has not come back. */
  private readonly lost = new Map<string, string>();
  /** By UUID, the GPUs that were not healthy at the last look, also those that are missing. */
  private unfit: ReadonlyMap<string, Gpu> = new Map();
  /** UUIDs of GPUs that move between drivers; neither driver has them then. */
  private readonly underway = new Set<string>();
  private moving: Promise<unknown> = Promise.resolve();

  constructor(private readonly host: VfioHost) {
    this.passthrough = {
      whyUnavailable: () => this.whyUnavailable(),
      devices: (uuids) => this.devices(uuids),
      take: (uuids) => this.take(uuids),
      giveBack: (uuids) => this.giveBack(uuids),
      taken: async () => (await this.away()).map(({ uuid }) => uuid),
    };
  }

  attachment(uuids: readonly string[]): GpuAttachment {
    return this.host.gpus.attachment(uuids);
  }

  async use(): Promise<ReadonlyMap<string, GpuReading>> {
    // nvidia-smi would open GPUs that are being taken from the driver.
    return this.underway.size > 0 ? new Map() : this.host.gpus.use();
  }

  async inventory(): Promise<GpuInventory> {
    const noted = await this.host.notes.read();
    // As above.
    if (noted && this.underway.size > 0) {
      const gpus = (await this.withHealth(noted.gpus)).map((gpu) => this.unfit.get(gpu.uuid) ?? gpu);
      return { ...noted, gpus };
    }
    const away = await this.away();
    const present = await this.host.gpus.inventory().catch((error: unknown) => {
      // The inventory fails if the driver has no GPU left.
      if (away.length === 0 || !noted) throw error;
      return { ...noted, gpus: [] };
    });
    const others = present.gpus.filter(({ uuid }) => !away.some((gpu) => gpu.uuid === uuid));
    const missing = missingOf(noted?.gpus ?? [], [...others, ...away]);
    this.unfit = new Map([...others, ...missing].filter(({ healthy }) => !healthy).map((gpu) => [gpu.uuid, gpu]));
    const gpus = [...others, ...away, ...missing].sort((one, other) => compare(one.pciAddress, other.pciAddress));
    const inventory = { ...present, gpus: gpus.map((gpu, index) => ({ ...gpu, index })) };
    await this.host.notes.write(inventory);
    return inventory;
  }

  private async whyUnavailable(): Promise<string | undefined> {
    if (!(await this.host.bus.hasVfio()))
      return 'the kernel has not loaded vfio-pci: load it at every boot with "modprobe vfio-pci"';
    const [{ gpus }, functions] = await Promise.all([this.inventory(), this.host.bus.list()]);
    const refusals = gpus.map(({ pciAddress }) => planPassthrough(functions, [pciAddress]));
    return refusals.find((refusal) => typeof refusal === 'string');
  }

  private async devices(uuids: readonly string[]): Promise<PassedDevices> {
    if (uuids.length === 0) return { paths: [], addresses: [] };
    const { groups, addresses } = await this.plan(uuids);
    return { paths: [VFIO_CONTROL, ...groups.map((group) => this.host.bus.pathOf(group))], addresses };
  }

  private async plan(uuids: readonly string[]): Promise<PassthroughPlan> {
    const slots = (await this.known(uuids)).map(({ pciAddress }) => pciAddress);
    const plan = planPassthrough(await this.host.bus.list(), slots);
    if (typeof plan === 'string') throw unavailable(plan);
    return plan;
  }

  private async known(uuids: readonly string[]): Promise<Gpu[]> {
    const { gpus } = (await this.host.notes.read()) ?? (await this.inventory());
    return uuids.map((uuid) => {
      const gpu = gpus.find((each) => each.uuid === uuid);
      if (!gpu) throw unavailable(`the host has no GPU ${uuid}`);
      return gpu;
    });
  }

  private async take(uuids: readonly string[]): Promise<void> {
    if (uuids.length === 0) return;
    const { addresses, groups } = await this.plan(uuids);
    await this.move(uuids, async () => {
      try {
        await this.checkUnused(uuids);
        await this.carryOut(takeSteps(await this.functions((address) => addresses.includes(address))));
        const left = await this.functions((address) => addresses.includes(address));
        const stayed = left.find(({ driver }) => driver !== VFIO);
        if (stayed) throw unavailable(`${stayed.address} stays with ${stayed.driver ?? 'no driver'}`);
        for (const group of groups) await this.host.bus.open(group, this.host.runnerId);
      } catch (error) {
        for (const gpu of await this.known(uuids)) await this.bringBack(gpu).catch(() => undefined);
        throw error instanceof Failure ? error : unavailable(messageOf(error));
      }
    });
  }

  /** Throws if a process of the host has the GPUs open: the driver would wait for it without a limit. */
  private async checkUnused(uuids: readonly string[]): Promise<void> {
    const { gpus, holders, clock } = this.host;
    const away = await this.away();
    const present = uuids.filter((uuid) => !away.some((gpu) => gpu.uuid === uuid));
    if (present.length === 0) return;
    // Not every driver supports this. The check of open devices below decides.
    for (const uuid of present) await gpus.disablePersistence(uuid).catch(() => undefined);
    const slots = (await this.known(present)).map(({ pciAddress }) => pciAddress);
    const deadline = clock.monotonic() + HELD_MS;
    for (;;) {
      const pids = await holders(slots);
      if (pids.length === 0) return;
      if (clock.monotonic() >= deadline)
        throw unavailable(`the GPUs at ${slots.join(', ')} are open in process ${pids.join(', ')}`);
      await sleep(clock, POLL_MS);
    }
  }

  private async giveBack(uuids: readonly string[]): Promise<void> {
    const wanted = (await this.away()).filter(({ uuid }) => uuids.includes(uuid));
    // Without GPUs to return, there is no reason to wait for other moves.
    if (wanted.length === 0) return;
    const failures: unknown[] = [];
    await this.move(uuids, async () => {
      for (const gpu of wanted) await this.bringBack(gpu).catch((error: unknown) => failures.push(error));
    });
    if (failures.length > 0) throw failures[0];
  }

  /** Returns a GPU to the host's driver and waits up to 30 seconds for it. A GPU that failed to come back before is only checked once. */
  private async bringBack(gpu: Gpu): Promise<void> {
    const { uuid, pciAddress } = gpu;
    try {
      await this.carryOut(returnSteps(await this.functions((address) => slotOf(address) === pciAddress)));
      await this.untilBack(uuid, this.lost.has(uuid) ? 0 : RETURN_MS);
      this.lost.delete(uuid);
    } catch (error) {
      const reason = `it has not come back from a virtual machine: ${messageOf(error)}`;
      this.lost.set(uuid, reason);
      throw unavailable(reason);
    }
    await this.host.gpus.restorePersistence(uuid).catch(() => undefined);
  }

  private async untilBack(uuid: string, patienceMs: number): Promise<void> {
    const { clock, gpus } = this.host;
    const deadline = clock.monotonic() + patienceMs;
    const isBack = async () => (await gpus.inventory()).gpus.some((gpu) => gpu.uuid === uuid && gpu.healthy);
    while (!(await isBack().catch(() => false))) {
      if (clock.monotonic() >= deadline) throw new Error('the driver does not list it as healthy');
      await sleep(clock, POLL_MS);
    }
  }

  /** Writes the steps, with a time limit for each: the kernel blocks a write while a process uses the device. */
  private async carryOut(steps: readonly SysfsWrite[]): Promise<void> {
    for (const step of steps) {
      await withTimeout(this.host.clock, WRITE_MS, this.host.bus.write(step), () => {
        throw unavailable(`the kernel does not let go of ${step.file} within ${WRITE_MS / 1000} seconds`);
      });
    }
  }

  /** Returns the GPUs that no driver of the host has, as the state file describes them. */
  private async away(): Promise<Gpu[]> {
    const noted = (await this.host.notes.read())?.gpus ?? [];
    const isAway = async ({ uuid, pciAddress }: Gpu) => {
      const driver = await this.host.bus.driverOf(`${pciAddress}.0`);
      return this.lost.has(uuid) || driver === VFIO || driver === null;
    };
    const are = await Promise.all(noted.map(isAway));
    return this.withHealth(noted.filter((_, index) => are[index]));
  }

  private async withHealth(gpus: readonly Gpu[]): Promise<Gpu[]> {
    const judge = async (gpu: Gpu): Promise<Gpu> => {
      const isStray = !this.underway.has(gpu.uuid) && (await this.host.bus.driverOf(`${gpu.pciAddress}.0`)) === null;
      const reason = this.lost.get(gpu.uuid) ?? (isStray ? 'no driver of the host has it' : '');
      return { ...gpu, healthy: reason === '', reason, processes: [] };
    };
    return Promise.all(gpus.map(judge));
  }

  private async functions(isMeant: (address: string) => boolean) {
    return (await this.host.bus.list()).filter(({ address }) => isMeant(address));
  }

  /** Runs one move after the other. The inventory lists the GPUs meanwhile. */
  private move(uuids: readonly string[], work: () => Promise<void>): Promise<void> {
    const done = this.moving.then(async () => {
      for (const uuid of uuids) this.underway.add(uuid);
      await work().finally(() => uuids.forEach((uuid) => this.underway.delete(uuid)));
    });
    this.moving = done.catch(() => undefined);
    return done;
  }
}

/** Returns the GPUs that were listed before and are no more, unless another one is in the same slot. */
function missingOf(noted: readonly Gpu[], listed: readonly Gpu[]): Gpu[] {
  const isListed = ({ uuid, pciAddress }: Gpu) =>
    listed.some((gpu) => gpu.uuid === uuid || (pciAddress !== '' && gpu.pciAddress === pciAddress));
  const room = Math.max(MOST_GPUS - listed.length, 0);
  const gone = noted.filter((gpu) => !isListed(gpu)).slice(0, room);
  return gone.map((gpu) => ({ ...gpu, healthy: false, reason: NOT_LISTED, missing: true, processes: [] }));
}

function compare(one: string, other: string): number {
  return one < other ? -1 : one > other ? 1 : 0;
}

function unavailable(message: string): Failure {
  return new Failure('GPUS_UNAVAILABLE', message);
}
