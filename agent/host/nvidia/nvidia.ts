import { execFile } from 'node:child_process';
import { totalmem } from 'node:os';
import { promisify } from 'node:util';
import { MIB } from '../../../shared/bytes.js';
import { withTimeout, type Clock } from '../../../shared/clock.js';
import { SetupError, messageOf } from '../../../shared/coded-error.js';
import type { NvidiaAttach } from '../../config.js';
import { kernelGpus, type ListedGpu } from './kernel-list.js';
import { parseReport, type NvidiaGpu, type NvidiaReport } from './report.js';
import { USE_QUERY, parseUse } from './use.js';
import { isWithdrawal, parseXids } from './xid.js';
import type { Gpu, GpuAttachment, GpuDriver, GpuInventory, GpuReading } from '../gpus/driver.js';

const run = promisify(execFile);
const TIMEOUT_MS = 30_000;
const MAX_REASON_CHARS = 400;
/** The share of a machine's memory that is sold as memory of GPUs that have none of their own; the rest is for instances. */
const GPU_MEMORY_SHARE = 0.75;
const OUTPUT = { maxBuffer: 64 * 1024 * 1024 };
const CAPABILITIES = ['compute', 'utility', 'graphics', 'video'];
/** Features of NVIDIA's container toolkit that an image can request by `NVIDIA_*` variables. Empty values refuse them. */
const REFUSED = ['MIG_CONFIG_DEVICES', 'MIG_MONITOR_DEVICES', 'IMEX_CHANNELS', 'GDS', 'MOFED', 'GDRCOPY', 'NVSWITCH'];

/** Where GPUs are known from while nvidia-smi lists none, and what then holds. */
export interface NvidiaSources {
  /** Returns the GPUs that were listed before this process; undefined: none were. */
  remembered: () => Promise<GpuInventory | undefined>;
  /** Returns the list of the kernel's driver. */
  listed: () => Promise<ListedGpu[]>;
  /** Whether the inventory fails if no GPU answers, as before an enrollment. Otherwise it shows what is known of them. */
  mustAnswer: boolean;
}

const BEFORE_ENROLLMENT: NvidiaSources = { remembered: async () => undefined, listed: kernelGpus, mustAnswer: true };

/** A GPU that nvidia-smi is asked for alone. */
interface Sought extends Pick<Gpu, 'uuid' | 'model' | 'pciAddress'> {
  known: Gpu | undefined;
}

/** What nvidia-smi says of one GPU: a report, or why there is none. */
type Answer = NvidiaReport | string;

/** The NVIDIA GPUs of the host's driver, read with nvidia-smi; containers get them by UUID, through Docker's device requests or CDI. */
export class NvidiaGpus implements Omit<GpuDriver, 'passthrough'> {
  private last: GpuInventory | undefined;
  private reading: Promise<GpuInventory> | undefined;
  private readingUse: Promise<ReadonlyMap<string, GpuReading>> | undefined;
  private readonly asked = new Map<string, Promise<NvidiaReport>>();
  /** Xid faults by PCI address. Kept here because the kernel's log drops old lines, and a broken GPU stays broken until the host boots. */
  private readonly xids = new Map<string, string>();
  private readonly letGone = new Set<string>();

  constructor(
    private readonly clock: Clock,
    private readonly attach: NvidiaAttach = 'device-requests',
    private readonly sources: NvidiaSources = BEFORE_ENROLLMENT,
  ) {}

  /** Switches persistence mode off, because it keeps the device of an unused GPU open. */
  async disablePersistence(uuid: string): Promise<void> {
    const [gpu] = (await this.query('-i', uuid)).gpus;
    if (!gpu?.isKeptAwake) return;
    await run('nvidia-smi', ['-i', uuid, '-pm', '0'], { ...OUTPUT, timeout: TIMEOUT_MS });
    this.letGone.add(uuid);
  }

  async restorePersistence(uuid: string): Promise<void> {
    if (!this.letGone.delete(uuid)) return;
    await run('nvidia-smi', ['-i', uuid, '-pm', '1'], { ...OUTPUT, timeout: TIMEOUT_MS });
  }

  /**
   * Reads the GPUs; one by one if nvidia-smi fails for all of them. A GPU that does not answer is unhealthy, so that the others stay
   * rented out. Throws SetupError if one must answer and none does.
   */
  inventory(): Promise<GpuInventory> {
    this.reading ??= this.refresh().finally(() => (this.reading = undefined));
    return this.reading;
  }

  /** Joins a query that is still running, for the same reason as {@link query}. Rejects if nvidia-smi fails, as for a GPU that is gone. */
  use(): Promise<ReadonlyMap<string, GpuReading>> {
    this.readingUse ??= queryUse().finally(() => (this.readingUse = undefined));
    return this.readingUse;
  }

  attachment(uuids: readonly string[]): GpuAttachment {
    const refused = REFUSED.map((name) => `NVIDIA_${name}=`);
    if (this.attach === 'cdi') {
      const DeviceIDs = uuids.map((uuid) => `nvidia.com/gpu=${uuid}`);
      return { env: ['NVIDIA_VISIBLE_DEVICES=void', ...refused], deviceRequests: [{ Driver: 'cdi', DeviceIDs }] };
    }
    const visible = [
      `NVIDIA_VISIBLE_DEVICES=${uuids.join(',')}`,
      `NVIDIA_DRIVER_CAPABILITIES=${CAPABILITIES.join(',')}`,
    ];
    const request = { Driver: 'nvidia', DeviceIDs: [...uuids], Capabilities: [['gpu', ...CAPABILITIES]] };
    return { env: [...visible, ...refused], deviceRequests: [request] };
  }

  private async refresh(): Promise<GpuInventory> {
    try {
      this.last = await withTimeout(this.clock, 2 * TIMEOUT_MS, this.read(), () => {
        throw new Error('nvidia-smi does not answer');
      });
    } catch (error) {
      this.last = await this.oneByOne(error);
    }
    this.last = { ...this.last, gpus: shareMemory(this.last.gpus) };
    return this.last;
  }

  private async read(): Promise<GpuInventory> {
    const [{ gpus, driverVersion, cudaVersion }] = await Promise.all([this.query(), this.readXids()]);
    if (gpus.length === 0) throw new Error('nvidia-smi lists no GPU');
    return { gpus: gpus.map((gpu, index) => this.judge(gpu, index)), driverVersion, cudaVersion };
  }

  /** Queries each known GPU alone, because nvidia-smi fails for all GPUs if one is gone. `cause`: why it has failed. */
  private async oneByOne(cause: unknown): Promise<GpuInventory> {
    const before = this.last ?? (await this.sources.remembered());
    const sought = soughtOf(before?.gpus ?? [], await this.sources.listed());
    const answers = await Promise.all(sought.map((gpu) => this.ask(gpu, reasonOf(cause))));
    const reports = answers.filter((answer) => typeof answer !== 'string');
    if (reports.length === 0 && this.sources.mustAnswer && !this.last) throw unreadable(reasonOf(cause), cause);
    const gpus = sought.flatMap((gpu, index) => this.judgeAlone(gpu, answers[index] ?? ''));
    const { driverVersion = '', cudaVersion = '' } = reports[0] ?? before ?? {};
    return { gpus: gpus.map((gpu, index) => ({ ...gpu, index })), driverVersion, cudaVersion };
  }

  /** Asks for one GPU. `otherwise`: the reason of one that says nothing. */
  private async ask({ uuid, pciAddress }: Sought, otherwise: string): Promise<Answer> {
    const asked = this.query('-i', uuid || `${pciAddress}.0`);
    try {
      const report = await withTimeout(this.clock, 2 * TIMEOUT_MS, asked, () => undefined);
      return report?.gpus[0] ? report : otherwise;
    } catch (error) {
      return reasonOf(error) || otherwise;
    }
  }

  /** Returns nothing for a GPU of which neither the driver nor this host knows the UUID: the control plane cannot name it. */
  private judgeAlone({ known, uuid, model, pciAddress }: Sought, answer: Answer): Gpu[] {
    const found = typeof answer === 'string' ? undefined : answer.gpus[0];
    if (found) return [this.judge(found, 0)];
    if (uuid === '') return [];
    const traits = known ?? { uuid, index: 0, model, memoryMb: 0, processes: [], pciAddress };
    const reasons = [typeof answer === 'string' ? answer : '', this.xids.get(pciAddress) ?? ''].filter(Boolean);
    return [{ ...traits, healthy: false, reason: shortened(reasons.join('; ') || 'nvidia-smi does not answer') }];
  }

  private judge({ faults, isKeptAwake: _, usesMachineMemory, ...gpu }: NvidiaGpu, index: number): Gpu {
    const reason = shortened([...faults, this.xids.get(gpu.pciAddress) ?? ''].filter(Boolean).join('; '));
    const before = this.last?.gpus.find(({ uuid }) => uuid === gpu.uuid);
    // A card that does not work can lose its name and its size, which its offer is made of.
    const known = { model: gpu.model || (before?.model ?? ''), memoryMb: gpu.memoryMb || (before?.memoryMb ?? 0) };
    const shared = usesMachineMemory ? { sharesMemory: true } : {};
    return { ...gpu, ...known, ...shared, index, healthy: reason === '', reason };
  }

  /** Joins a query that is still running: nvidia-smi that hangs in the kernel ignores signals, so a second one must not start. */
  private query(...which: string[]): Promise<NvidiaReport> {
    const key = which.join(' ');
    const asked = this.asked.get(key) ?? query(...which).finally(() => this.asked.delete(key));
    this.asked.set(key, asked);
    return asked;
  }

  /** Reads Xid faults from the kernel's log. Ignores a log that it cannot read; the doctor reports that. */
  private async readXids(): Promise<void> {
    const { stdout } = await run('dmesg', [], { ...OUTPUT, timeout: TIMEOUT_MS }).catch(() => ({ stdout: '' }));
    for (const xid of parseXids(stdout)) {
      const { pciAddress, number, text } = xid;
      const asked = `the driver has reported Xid ${number} `;
      if (!isWithdrawal(xid)) this.xids.set(pciAddress, `${asked}(${text}); reboot the host`);
      // It takes back no other fault.
      else if (this.xids.get(pciAddress)?.startsWith(asked)) this.xids.delete(pciAddress);
    }
  }
}

/** Divides the GPUs' share of the machine's memory among those that have none of their own. */
function shareMemory(gpus: readonly Gpu[]): Gpu[] {
  const sharing = gpus.filter(({ sharesMemory }) => sharesMemory).length;
  const memoryMb = Math.floor((totalmem() * GPU_MEMORY_SHARE) / MIB / Math.max(sharing, 1));
  return gpus.map((gpu) => (gpu.sharesMemory ? { ...gpu, memoryMb } : gpu));
}

/** Joins what this host knows of its GPUs and what the kernel's driver lists, in the order of the slots. */
function soughtOf(known: readonly Gpu[], listed: readonly ListedGpu[]): Sought[] {
  const isSame = (gpu: Gpu, other: ListedGpu) =>
    other.uuid === '' ? gpu.pciAddress === other.pciAddress : gpu.uuid === other.uuid;
  const others = listed.filter((other) => !known.some((gpu) => isSame(gpu, other)));
  return [...known.map((gpu) => ({ ...gpu, known: gpu })), ...others.map((gpu) => ({ ...gpu, known: undefined }))].sort(
    (one, other) => one.pciAddress.localeCompare(other.pciAddress),
  );
}

/** Cuts a reason to the length that the control plane accepts. */
function shortened(reason: string): string {
  return reason.slice(0, MAX_REASON_CHARS);
}

async function query(...which: string[]): Promise<NvidiaReport> {
  const { stdout } = await run('nvidia-smi', ['-q', '-x', ...which], { ...OUTPUT, timeout: TIMEOUT_MS });
  return parseReport(stdout);
}

async function queryUse(): Promise<ReadonlyMap<string, GpuReading>> {
  const query = [`--query-gpu=${USE_QUERY.join(',')}`, '--format=csv,noheader,nounits'];
  const { stdout } = await run('nvidia-smi', query, { ...OUTPUT, timeout: TIMEOUT_MS });
  return parseUse(stdout);
}

/** Returns the first line of the error message of nvidia-smi, which it prints to standard output. */
function reasonOf(error: unknown): string {
  const { stdout } = error as { stdout?: string };
  const said = stdout && !stdout.trimStart().startsWith('<') ? stdout : messageOf(error);
  return said.trim().split('\n')[0] ?? '';
}

function unreadable(reason: string, cause: unknown): SetupError {
  return new SetupError(
    `the NVIDIA GPUs cannot be read (${reason}); install the driver, or use --gpus simulated:8 to try gpurent out`,
    { cause },
  );
}
