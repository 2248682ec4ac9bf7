import { mkdirSync, mkdtempSync, readFileSync, readlinkSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { SysfsWrite } from '../../agent/domain/passthrough.js';
import { PciBus } from '../../agent/host/passthrough/pci-bus.js';

const FIXTURES = fileURLToPath(new URL('../fixtures/pci/', import.meta.url));

/**
 * The PCI devices of a real machine as folders and links, as the kernel shows them, out of a listing in `test/fixtures/pci`. What
 * is written to it has the effect that it has on a kernel.
 */
export class PciTree extends PciBus {
  /** Every write, in order. */
  readonly writes: string[] = [];
  /** Functions that no driver takes back. */
  readonly broken = new Set<string>();
  /** Groups that an account may open. */
  readonly opened: [number, number][] = [];
  private lastWrite = Infinity;
  private readonly homes = new Map<string, string>();

  private constructor(readonly folder: string) {
    super(join(folder, 'bus/pci'), join(folder, 'dev'));
  }

  static of(machine: string): PciTree {
    const tree = new PciTree(mkdtempSync(join(tmpdir(), 'gpurent-pci-')));
    const lines = readFileSync(join(FIXTURES, `${machine}.txt`), 'utf8').split('\n');
    for (const line of lines) if (line !== '' && !line.startsWith('#')) tree.add(line.trim().split(/\s+/));
    tree.driver('vfio-pci');
    return tree;
  }

  /** Whatever is written after so many writes in all is never answered. */
  dieAfter(writes: number): void {
    this.lastWrite = writes;
  }

  override async write({ file, text }: SysfsWrite): Promise<void> {
    if (this.writes.length >= this.lastWrite) return new Promise(() => {});
    this.writes.push(`${file} < ${text.trim()}`);
    const [, address = ''] = /^devices\/([^/]+)\//.exec(file) ?? [];
    if (file.endsWith('driver_override')) writeFileSync(join(this.device(address), 'driver_override'), text);
    else if (file.endsWith('driver/unbind')) rmSync(join(this.device(address), 'driver'));
    else this.probe(text);
  }

  override async open(group: number, id: number): Promise<void> {
    this.opened.push([group, id]);
  }

  /** At this moment. */
  driverNow(address: string): string | null {
    try {
      return basename(readlinkSync(join(this.device(address), 'driver')));
    } catch {
      return null;
    }
  }

  remove(): void {
    rmSync(this.folder, { recursive: true });
  }

  private probe(address: string): void {
    const wanted = readFileSync(join(this.device(address), 'driver_override'), 'utf8').trim();
    const driver = wanted || (this.broken.has(address) ? '' : (this.homes.get(address) ?? ''));
    if (driver !== '' && this.driverNow(address) === null) this.bind(address, driver);
  }

  private add([address = '', code = '', id = '', group = '', driver = '']: string[]): void {
    const folder = this.device(address);
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, 'class'), `0x${code}\n`);
    writeFileSync(join(folder, 'vendor'), `0x${id.split(':')[0]}\n`);
    writeFileSync(join(folder, 'driver_override'), '\n');
    if (group !== '-') symlinkSync(`../../../kernel/iommu_groups/${group}`, join(folder, 'iommu_group'));
    if (driver === '-') return;
    this.homes.set(address, driver);
    this.bind(address, driver);
  }

  private bind(address: string, driver: string): void {
    symlinkSync(this.driver(driver), join(this.device(address), 'driver'));
  }

  private driver(name: string): string {
    const folder = join(this.folder, 'bus/pci/drivers', name);
    mkdirSync(folder, { recursive: true });
    return folder;
  }

  private device(address: string): string {
    return join(this.folder, 'bus/pci/devices', address);
  }
}
