import { XMLParser } from 'fast-xml-parser';
import { GPU_UUID } from '../../../shared/gpus/gpu-uuid.js';
import type { GpuProcess } from '../gpus/driver.js';

export interface NvidiaReport {
  driverVersion: string;
  cudaVersion: string;
  gpus: NvidiaGpu[];
}

export interface NvidiaGpu {
  uuid: string;
  model: string;
  /** 0: nvidia-smi shows none. */
  memoryMb: number;
  /** Whether it has no memory of its own: it uses the machine's. */
  usesMachineMemory: boolean;
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

/** Models without memory of their own, of which nvidia-smi shows no size. */
const UNIFIED = /\b(GB10|GH200|GB200|GB300|Tegra|Orin|Thor|Xavier)\b/i;
/** The words for a value that a card or its driver does not have. */
const NONE = /^\[?(n\/a|none|not supported|not available|requested functionality has been deprecated|)\]?$/i;
/** The words in place of a value of a card that does not work. */
const ODD = /unknown error|^err!$|requires reset|is lost|has fallen off/i;

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
    driverVersion: versionOf(textAt(root, 'driver_version')),
    cudaVersion: versionOf(textAt(root, 'cuda_version')),
    gpus: listAt(root, 'gpu').map(parseGpu),
  };
}

function parseGpu(gpu: Node): NvidiaGpu {
  const uuid = textAt(gpu, 'uuid');
  if (!GPU_UUID.test(uuid)) throw new Error(`nvidia-smi names a GPU "${uuid}", which is not a GPU UUID`);
  const name = textAt(gpu, 'product_name');
  const model = NONE.test(name) || ODD.test(name) ? '' : name;
  const size = textAt(gpu, 'fb_memory_usage', 'total');
  const memoryMb = sizeOf(size);
  const usesMachineMemory = memoryMb === 0 && NONE.test(size) && UNIFIED.test(model);
  const lacking = [
    model === '' && `nvidia-smi does not name its model: "${name}"`,
    memoryMb === 0 && !usesMachineMemory && `nvidia-smi shows no size of its memory: "${size}"`,
  ].filter((fault) => fault !== false);
  return {
    uuid,
    model,
    memoryMb,
    usesMachineMemory,
    pciAddress: pciAddressOf(textAt(gpu, 'pci', 'pci_bus_id')),
    faults: [...lacking, ...faultsOf(gpu)],
    isKeptAwake: textAt(gpu, 'persistence_mode').toLowerCase() === 'enabled',
    processes: listAt(nodeOf(gpu['processes']) ?? {}, 'process_info')
      .filter((process) => textAt(process, 'type').includes('C'))
      .map((process) => ({ pid: numberOf(textAt(process, 'pid')) ?? 0, name: textAt(process, 'process_name') })),
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
    !NONE.test(recovery) && `its driver asks for: ${recovery}`,
    fabricFault(textAt(gpu, 'fabric', 'state'), textAt(gpu, 'fabric', 'status')),
    ...oddities(gpu),
    says('enabled', 'mig_mode', 'current_mig') && 'it is divided by MIG; only whole GPUs are rented',
    says('prohibited', 'compute_mode') && 'its compute mode is "Prohibited"',
  ];
  return [...new Set(faults.filter((fault) => fault !== false))];
}

/** Judges how far the NVLink fabric is, without which CUDA does not start on machines with NVSwitch. */
function fabricFault(state: string, status: string): string | false {
  const advice = 'see "systemctl status nvidia-fabricmanager"';
  if (!NONE.test(state) && !/^completed$/i.test(state))
    return `the state of its NVLink fabric is "${state}"; ${advice}`;
  if (NONE.test(status) || /^success$/i.test(status)) return false;
  return `the status of its NVLink fabric is "${status}"; ${advice}`;
}

/** Returns a fault for each value of its health in whose place nvidia-smi prints an error. */
function oddities(gpu: Node): string[] {
  const parts = ['fb_memory_usage', 'ecc_errors', 'remapped_rows', 'retired_pages', 'mig_mode', 'gpu_reset_status'];
  const texts = [...parts.flatMap((name) => textsIn(gpu[name])), textAt(gpu, 'compute_mode')];
  return [...new Set(texts.filter((text) => ODD.test(text)))].map((text) => `nvidia-smi says "${text}" of its health`);
}

function textsIn(value: Value): string[] {
  if (typeof value === 'string') return [value];
  if (Array.isArray(value)) return value.flatMap(textsIn);
  return Object.values(value ?? {}).flatMap(textsIn);
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

/** Parses a size of memory in MiB; 0 for everything else. */
function sizeOf(text: string): number {
  return /^\d{1,9} MiB$/.test(text) ? Number.parseInt(text, 10) : 0;
}

/** Parses "3" or "3 MiB"; undefined for "N/A". */
function numberOf(text: string): number | undefined {
  const digits = /^\d+/.exec(text)?.[0];
  return digits === undefined ? undefined : Number(digits);
}

function versionOf(text: string): string {
  return /^\d+(\.\d+)*$/.test(text) ? text : '';
}

/** Converts a PCI address of nvidia-smi (capitals, 8-digit domain) to that of the kernel's log (4-digit domain, no function). */
function pciAddressOf(busId: string): string {
  if (!/^[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}/i.test(busId)) return '';
  return busId
    .toLowerCase()
    .replace(/^0000(?=[0-9a-f]{4}:)/, '')
    .replace(/\.[0-9a-f]$/, '');
}
