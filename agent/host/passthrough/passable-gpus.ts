import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { sleep, type Clock } from '../../../shared/clock.js';
import { messageOf } from '../../../shared/coded-error.js';
import { Failure } from '../../domain/failure.js';
import {
  VFIO,
  planPassthrough,
  returnSteps,
  slotOf,
  takeSteps,
  type PassthroughPlan,
  type PciFunction,
} from '../../domain/passthrough.js';
import type { Gpu, GpuAttachment, GpuDriver, GpuInventory, PassedDevices, Passthrough } from '../gpus/driver.js';
import type { PciBus } from './pci-bus.js';

const RETURN_MS = 60_000;
const POLL_MS = 500;
const VFIO_CONTROL = '/dev/vfio/vfio';

/** GPUs that the host's driver has. */
export type HostGpus = Omit<GpuDriver, 'passthrough'> & { letGo(uuid: string): Promise<void> };

export interface PassableHost {
  gpus: HostGpus;
  bus: PciBus;
  /** Where it is noted which GPU is in which slot: the driver does not know one that was taken. */
  file: string;
  /** Processes that have a GPU of these slots open. */
  holders: (slots: readonly string[]) => Promise<number[]>;
  /** The account that QEMU runs as. */
  runnerId: number;
  clock: Clock;
}

/**
 * GPUs that are with the host, or taken from it for a virtual machine. One that was taken stays in the inventory, for it is
 * rented, not gone; one that does not come back is unhealthy until it does.
 */
export class PassableGpus implements GpuDriver {
  readonly passthrough: Passthrough;
  private known: GpuInventory | undefined;
  private readonly lost = new Map<string, string>();
  /** On their way from one driver to another, when neither has them. */
  private readonly underway = new Set<string>();
  private moving: Promise<unknown> = Promise.resolve();

  constructor(private readonly host: PassableHost) {
    this.passthrough = {
      obstacle: () => this.obstacle(),
      devices: (uuids) => this.devices(uuids),
      take: (uuids) => this.move(uuids, () => this.take(uuids)),
      giveBack: (uuids) => this.move(uuids, () => this.giveBack(uuids)),
      taken: async () => (await this.goneGpus()).map(({ uuid }) => uuid),
    };
  }

  attachment(uuids: readonly string[]): GpuAttachment {
    return this.host.gpus.attachment(uuids);
  }

  async inventory(): Promise<GpuInventory> {
    const before = await this.load();
    const away = await this.awayGpus();
    const present = await this.host.gpus.inventory().catch((error: unknown) => {
      // The driver's tool fails where it has no GPU left.
      if (away.length === 0 || !before) throw error;
      return { ...before, gpus: [] };
    });
    const others = present.gpus.filter(({ uuid }) => !away.some((gpu) => gpu.uuid === uuid));
    const gpus = [...others, ...away].sort((one, other) => compare(one.pciAddress, other.pciAddress));
    const inventory = { ...present, gpus: gpus.map((gpu, index) => ({ ...gpu, index })) };
    await this.save(inventory);
    return inventory;
  }

  private async obstacle(): Promise<string | undefined> {
    if (!(await this.host.bus.hasVfio()))
      return 'the kernel has no vfio-pci: load it with "modprobe vfio-pci", at every boot';
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
    const slots = (await this.gpusOf(uuids)).map(({ pciAddress }) => pciAddress);
    const plan = planPassthrough(await this.host.bus.list(), slots);
    if (typeof plan === 'string') throw unavailable(plan);
    return plan;
  }

  private async take(uuids: readonly string[]): Promise<void> {
    if (uuids.length === 0) return;
    const { bus, runnerId } = this.host;
    const { addresses, groups } = await this.plan(uuids);
    try {
      await this.checkUnused(uuids);
      for (const step of takeSteps(await this.functions(addresses))) await bus.write(step);
      const left = (await this.functions(addresses)).find(({ driver }) => driver !== VFIO);
      if (left) throw unavailable(`${left.address} stays with ${left.driver ?? 'no driver'}`);
      for (const group of groups) await bus.open(group, runnerId);
    } catch (error) {
      for (const uuid of uuids) this.lost.set(uuid, messageOf(error));
      await this.giveBack(uuids).catch(() => undefined);
      throw error instanceof Failure ? error : unavailable(messageOf(error));
    }
  }

  /** Nothing of the host may have them open: a driver waits for that, and longer than anybody would. */
  private async checkUnused(uuids: readonly string[]): Promise<void> {
    const { gpus, holders } = this.host;
    const gone = await this.goneGpus();
    const present = uuids.filter((uuid) => !gone.some((gpu) => gpu.uuid === uuid));
    // Not every driver knows how; who still has it open counts.
    for (const uuid of present) await gpus.letGo(uuid).catch(() => undefined);
    const slots = (await this.gpusOf(present)).map(({ pciAddress }) => pciAddress);
    const pids = slots.length > 0 ? await holders(slots) : [];
    if (pids.length > 0) throw unavailable(`the GPUs at ${slots.join(', ')} are open in process ${pids.join(', ')}`);
  }

  private async gpusOf(uuids: readonly string[]): Promise<Gpu[]> {
    const { gpus } = (await this.load()) ?? (await this.inventory());
    return uuids.map((uuid) => {
      const gpu = gpus.find((each) => each.uuid === uuid);
      if (!gpu) throw unavailable(`the host has no GPU ${uuid}`);
      return gpu;
    });
  }

  private async giveBack(uuids: readonly string[]): Promise<void> {
    const wanted = (await this.goneGpus()).filter(({ uuid }) => uuids.includes(uuid));
    if (wanted.length === 0) return;
    const slots = wanted.map(({ pciAddress }) => pciAddress);
    const functions = (await this.host.bus.list()).filter(({ address }) => slots.includes(slotOf(address)));
    try {
      for (const step of returnSteps(functions)) await this.host.bus.write(step);
      await this.untilBack(wanted.map(({ uuid }) => uuid));
      for (const { uuid } of wanted) this.lost.delete(uuid);
    } catch (error) {
      const reason = `it has not come back from a virtual machine: ${messageOf(error)}`;
      for (const { uuid } of wanted) this.lost.set(uuid, reason);
      throw unavailable(reason);
    }
  }

  private async untilBack(uuids: readonly string[]): Promise<void> {
    const { clock, gpus } = this.host;
    const deadline = clock.monotonic() + RETURN_MS;
    for (;;) {
      const found = (await gpus.inventory()).gpus;
      const missing = uuids.find((uuid) => !found.some((gpu) => gpu.uuid === uuid && gpu.healthy));
      if (missing === undefined) return;
      if (clock.monotonic() >= deadline) throw new Error(`the driver does not show ${missing} in health`);
      await sleep(clock, POLL_MS);
    }
  }

  /** As they were known, in health unless they have failed to come back. */
  private async awayGpus(): Promise<Gpu[]> {
    const gone = await this.goneGpus();
    const known = (await this.load())?.gpus ?? [];
    const away = known.filter((gpu) => this.underway.has(gpu.uuid) || gone.includes(gpu));
    return away.map((gpu) => {
      const reason = this.lost.get(gpu.uuid) ?? '';
      return { ...gpu, healthy: reason === '', reason };
    });
  }

  /** Those that were taken, and those that have not come back. */
  private async goneGpus(): Promise<Gpu[]> {
    const known = (await this.load())?.gpus ?? [];
    const isTaken = async ({ pciAddress }: Gpu) => (await this.host.bus.driverOf(`${pciAddress}.0`)) === VFIO;
    const gone = await Promise.all(known.map(async (gpu) => this.lost.has(gpu.uuid) || (await isTaken(gpu))));
    return known.filter((_, index) => gone[index]);
  }

  private async functions(addresses: readonly string[]): Promise<PciFunction[]> {
    return (await this.host.bus.list()).filter(({ address }) => addresses.includes(address));
  }

  /** One after the other; whoever looks meanwhile finds them still. */
  private move(uuids: readonly string[], work: () => Promise<void>): Promise<void> {
    const done = this.moving.then(async () => {
      await this.inventory();
      for (const uuid of uuids) this.underway.add(uuid);
      await work().finally(() => this.underway.clear());
    });
    this.moving = done.catch(() => undefined);
    return done;
  }

  private async load(): Promise<GpuInventory | undefined> {
    this.known ??= await readFile(this.host.file, 'utf8').then(
      (text) => JSON.parse(text) as GpuInventory,
      () => undefined,
    );
    return this.known;
  }

  private async save(inventory: GpuInventory): Promise<void> {
    const kept = ({ gpus, ...versions }: GpuInventory) =>
      JSON.stringify({ ...versions, gpus: gpus.map((gpu) => ({ ...gpu, healthy: true, reason: '', processes: [] })) });
    const text = kept(inventory);
    if (this.known && kept(this.known) === text) return;
    this.known = JSON.parse(text) as GpuInventory;
    await mkdir(dirname(this.host.file), { recursive: true, mode: 0o700 });
    await writeFile(`${this.host.file}.new`, text, { mode: 0o600 });
    await rename(`${this.host.file}.new`, this.host.file);
  }
}

function compare(one: string, other: string): number {
  return one < other ? -1 : one > other ? 1 : 0;
}

function unavailable(message: string): Failure {
  return new Failure('GPUS_UNAVAILABLE', message);
}
