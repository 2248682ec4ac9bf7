import { XMLParser } from 'fast-xml-parser';
import { GPU_UUID } from '../../../shared/gpu-uuid.js';
import type { GpuProcess } from '../gpus/driver.js';

export interface NvidiaReport {
  driverVersion: string;
  cudaVersion: string;
  gpus: NvidiaGpu[];
}

export interface NvidiaGpu {
  uuid: string;
  model: string;
  memoryMb: number;
  /** In the format of the kernel's log, for example `0000:3b:00`. */
  pciAddress: string;
  /** Why it must not be rented, in words for the host owner. */
  faults: string[];
  /** The compute processes on it, with process ids of the host. */
  processes: GpuProcess[];
  /** Whether persistence mode is on: the driver keeps the device open while nobody uses it. */
  isKeptAwake: boolean;
}

interface Node {
  [name: string]: Value;
}
type Value = string | Node | Node[] | undefined;

const LISTS = ['gpu', 'process_info'];
const parser = new XMLParser({
  parseTagValue: false,
  ignoreDeclaration: true,
  processEntities: { enabled: true, maxTotalExpansions: 10_000 },
  isArray: (name) => LISTS.includes(name),
});

/**
 * Parses the output of `nvidia-smi -q -x`. Its elements differ between generations of drivers: a missing element counts as healthy.
 * Throws if the output is not such a report.
 */
export function parseReport(output: string): NvidiaReport {
  const root = nodeOf((parser.parse(output.slice(Math.max(output.indexOf('<'), 0))) as Node)['nvidia_smi_log']);
  if (!root) throw new Error(`nvidia-smi printed an unknown report: ${output.trim().slice(0, 200)}`);
  return {
    driverVersion: textAt(root, 'driver_version'),
    cudaVersion: versionOf(textAt(root, 'cuda_version')),
    gpus: listAt(root, 'gpu').map(parseGpu),
  };
}

function parseGpu(gpu: Node): NvidiaGpu {
  const uuid = textAt(gpu, 'uuid');
  if (!GPU_UUID.test(uuid)) throw new Error(`nvidia-smi names a GPU "${uuid}", which is not a GPU UUID`);
  return {
    uuid,
    model: textAt(gpu, 'product_name'),
    memoryMb: numberOf(textAt(gpu, 'fb_memory_usage', 'total')) ?? 0,
    pciAddress: pciAddressOf(textAt(gpu, 'pci', 'pci_bus_id')),
    faults: faultsOf(gpu),
    isKeptAwake: textAt(gpu, 'persistence_mode').toLowerCase() === 'enabled',
    processes: listAt(nodeOf(gpu['processes']) ?? {}, 'process_info')
      .filter((process) => textAt(process, 'type').includes('C'))
      .map((process) => ({ pid: Number(textAt(process, 'pid')), name: textAt(process, 'process_name') })),
  };
}

function faultsOf(gpu: Node): string[] {
  const says = (value: string, ...path: string[]) => textAt(gpu, ...path).toLowerCase() === value;
  const recovery = textAt(gpu, 'gpu_recovery_action');
  const uncorrected = uncorrectedErrors(nodeOf(nodeOf(gpu['ecc_errors'])?.['volatile']));
  const faults: (string | false)[] = [
    uncorrected > 0 && `${uncorrected} uncorrected memory errors since the driver was loaded`,
    says('yes', 'remapped_rows', 'remapped_row_failure') && 'its memory has no spare rows left',
    says('yes', 'remapped_rows', 'remapped_row_pending') && 'a memory row waits for a reset of the GPU',
    says('yes', 'retired_pages', 'pending_retirement') && 'a memory page waits for a reset of the GPU',
    says('yes', 'retired_pages', 'pending_blacklist') && 'a memory page waits for a reset of the GPU',
    says('yes', 'gpu_reset_status', 'reset_required') && 'it needs a reset',
    !/^(none|n\/a|)$/i.test(recovery) && `its driver asks for: ${recovery}`,
    says('enabled', 'mig_mode', 'current_mig') && 'it is divided by MIG; only whole GPUs are rented',
    says('prohibited', 'compute_mode') && 'its compute mode is "Prohibited"',
  ];
  return [...new Set(faults.filter((fault) => fault !== false))];
}

/** Sums the uncorrected memory errors. Drivers up to 11.x have one total of double-bit errors, later ones a count for each memory. */
function uncorrectedErrors(volatile: Node | undefined): number {
  if (!volatile) return 0;
  const old = numberOf(textAt(volatile, 'double_bit', 'total'));
  const names = Object.keys(volatile).filter((name) => name.includes('_uncorrectable'));
  return old ?? names.reduce((sum, name) => sum + (numberOf(textAt(volatile, name)) ?? 0), 0);
}

function nodeOf(value: Value): Node | undefined {
  return typeof value === 'object' && !Array.isArray(value) ? value : undefined;
}

function textAt(node: Node, ...path: string[]): string {
  const value = path.reduce<Value>((at, name) => nodeOf(at)?.[name], node);
  return typeof value === 'string' ? value : '';
}

function listAt(node: Node, name: string): Node[] {
  const value = node[name];
  return Array.isArray(value) ? value : [];
}

/** Parses "81920 MiB" or "3"; undefined for "N/A". */
function numberOf(text: string): number | undefined {
  const digits = /^\d+/.exec(text)?.[0];
  return digits === undefined ? undefined : Number(digits);
}

function versionOf(text: string): string {
  return /^\d+(\.\d+)*$/.test(text) ? text : '';
}

/** Converts a PCI address of nvidia-smi (capitals, 8-digit domain) to that of the kernel's log (4-digit domain, no function). */
function pciAddressOf(busId: string): string {
  return busId
    .toLowerCase()
    .replace(/^0000(?=[0-9a-f]{4}:)/, '')
    .replace(/\.[0-9a-f]$/, '');
}
