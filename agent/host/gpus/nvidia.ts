import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { SetupError, messageOf } from '../../../shared/coded-error.js';
import { GPU_COLUMNS, parseCudaVersion, parseGpuList } from '../../domain/nvidia-smi.js';
import type { GpuDriver, GpuInventory } from './driver.js';

const run = promisify(execFile);
const TIMEOUT_MS = 30_000;

/** NVIDIA GPUs, by the driver's own tool; attached by Docker's device requests. */
export class NvidiaGpus implements GpuDriver {
  async inventory(): Promise<GpuInventory> {
    try {
      const [list, heading] = await Promise.all([
        run('nvidia-smi', [`--query-gpu=${GPU_COLUMNS.join(',')}`, '--format=csv,noheader,nounits'], {
          timeout: TIMEOUT_MS,
        }),
        run('nvidia-smi', [], { timeout: TIMEOUT_MS }),
      ]);
      const gpus = parseGpuList(list.stdout);
      return {
        gpus: gpus.map(({ uncorrectedEccErrors, driverVersion: _, ...gpu }) => {
          const healthy = !uncorrectedEccErrors;
          return { ...gpu, healthy, reason: healthy ? '' : `${uncorrectedEccErrors} uncorrected memory errors` };
        }),
        driverVersion: gpus[0]?.driverVersion ?? '',
        cudaVersion: parseCudaVersion(heading.stdout),
      };
    } catch (error) {
      throw new SetupError(
        `the NVIDIA GPUs cannot be read (${messageOf(error).split('\n')[0]}); install the driver, or use --gpus simulated:8 for trying out`,
        { cause: error },
      );
    }
  }

  attachment(uuids: readonly string[]) {
    return { env: [], deviceRequests: [{ Driver: 'nvidia', DeviceIDs: [...uuids], Capabilities: [['gpu']] }] };
  }
}
