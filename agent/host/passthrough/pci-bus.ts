import { chown, readFile, readdir, readlink, stat, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { PciFunction, SysfsWrite } from '../../domain/passthrough.js';

/** The PCI devices in sysfs, and the permissions of their VFIO groups. */
export class PciBus {
  constructor(
    private readonly root = '/sys/bus/pci',
    private readonly devices = '/dev',
  ) {}

  async list(): Promise<PciFunction[]> {
    const addresses = await readdir(join(this.root, 'devices')).catch(() => []);
    return Promise.all(addresses.sort().map((address) => this.read(address)));
  }

  /** Returns the driver of a function; null if it has none, undefined if no device is at the address. */
  async driverOf(address: string): Promise<string | null | undefined> {
    const driver = await this.nameAt(address, 'driver');
    return driver === null && !(await exists(join(this.root, 'devices', address))) ? undefined : driver;
  }

  async write({ file, text }: SysfsWrite): Promise<void> {
    await writeFile(join(this.root, file), text);
  }

  /** Tells whether the kernel has loaded vfio-pci. */
  async hasVfio(): Promise<boolean> {
    return exists(join(this.root, 'drivers/vfio-pci'));
  }

  /** Makes the user `id` the owner of a VFIO group. */
  async open(group: number, id: number): Promise<void> {
    await chown(this.pathOf(group), id, id);
  }

  pathOf(group: number): string {
    return join(this.devices, 'vfio', String(group));
  }

  /** Returns the name of the target of a function's link; null if there is no link. */
  private nameAt(address: string, link: string): Promise<string | null> {
    return readlink(join(this.root, 'devices', address, link)).then(
      (target) => basename(target),
      () => null,
    );
  }

  private async read(address: string): Promise<PciFunction> {
    const folder = join(this.root, 'devices', address);
    const number = async (name: string) => Number((await readFile(join(folder, name), 'utf8')).trim());
    const group = await this.nameAt(address, 'iommu_group');
    return {
      address,
      class: await number('class'),
      vendor: await number('vendor'),
      group: group === null ? null : Number(group),
      driver: await this.nameAt(address, 'driver'),
    };
  }
}

function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}
