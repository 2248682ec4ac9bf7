import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { withTimeout, type Clock } from '../../../shared/clock.js';
import { SetupError, messageOf } from '../../../shared/coded-error.js';
import { GPU_COLUMNS, parseCudaVersion, parseGpuList } from '../../domain/nvidia-smi.js';
import type { GpuDriver, GpuInventory } from './driver.js';

const run = promisify(execFile);
const TIMEOUT_MS = 15_000;

/** NVIDIA GPUs, by the driver's own tool; attached by Docker's device requests. */
export class NvidiaGpus implements GpuDriver {
  private last: GpuInventory | undefined;

  constructor(private readonly clock: Clock) {}

  /** Once they were read, a failure makes them unhealthy and no more: the host must stay within reach. */
  async inventory(): Promise<GpuInventory> {
    try {
      // A tool that is stuck in the kernel heeds no signal.
      this.last = await withTimeout(this.clock, 2 * TIMEOUT_MS, this.read(), () => {
        throw new Error('nvidia-smi does not answer');
      });
    } catch (error) {
      const reason = messageOf(error).split('\n')[0] ?? '';
      if (!this.last) throw unreadable(reason, error);
      this.last = { ...this.last, gpus: this.last.gpus.map((gpu) => ({ ...gpu, healthy: false, reason })) };
    }
    return this.last;
  }

  attachment(uuids: readonly string[]) {
    return { env: [], deviceRequests: [{ Driver: 'nvidia', DeviceIDs: [...uuids], Capabilities: [['gpu']] }] };
  }

  private async read(): Promise<GpuInventory> {
    const query = [`--query-gpu=${GPU_COLUMNS.join(',')}`, '--format=csv,noheader,nounits'];
    const options = { timeout: TIMEOUT_MS };
    const [list, heading] = await Promise.all([run('nvidia-smi', query, options), run('nvidia-smi', [], options)]);
    const gpus = parseGpuList(list.stdout);
    return {
      gpus: gpus.map(({ uncorrectedEccErrors, driverVersion: _, ...gpu }) => {
        const healthy = !uncorrectedEccErrors;
        return { ...gpu, healthy, reason: healthy ? '' : `${uncorrectedEccErrors} uncorrected memory errors` };
      }),
      driverVersion: gpus[0]?.driverVersion ?? '',
      cudaVersion: parseCudaVersion(heading.stdout),
    };
  }
}

function unreadable(reason: string, cause: unknown): SetupError {
  return new SetupError(
    `the NVIDIA GPUs cannot be read (${reason}); install the driver, or use --gpus simulated:8 for trying out`,
    { cause },
  );
}
