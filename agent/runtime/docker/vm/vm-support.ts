import { stat } from 'node:fs/promises';
import type { Clock } from '../../../../shared/clock.js';
import { messageOf } from '../../../../shared/coded-error.js';
import { MINUTE_MS } from '../../../../shared/time.js';
import type { Accelerator, VmSettings } from '../../../domain/virtual-machine.js';
import type { GpuDriver } from '../../../host/gpus/driver.js';
import type { Engine } from '../engine.js';
import { readImage } from '../images/images.js';
import { hostNamespace } from './host-namespace.js';
import type { Job, RunnerJobs } from './runner-job.js';
import { asDevice } from './vm-options.js';

const KVM = '/dev/kvm';
const ROOT = 0;
const GROUP_READ_WRITE = 0o060;
const OTHERS_READ_WRITE = 0o006;
const BOOTED = 'gpurent-probe: booted';
/** Time until the next probe after a failed one. */
const AGAIN_MS = 10 * MINUTE_MS;
const PROBE_MS = { kvm: 20_000, tcg: MINUTE_MS } as const;

/** Devices of the host that QEMU needs, and groups that can open them. */
export interface AcceleratorAccess {
  devices: string[];
  groups: number[];
}

/** Finds out whether this host can run virtual machines, by booting a small one. */
export class VmSupport {
  private probed: Promise<string | undefined> | undefined;
  private staleAt = Infinity;

  constructor(
    private readonly engine: Engine,
    private readonly jobs: RunnerJobs,
    private readonly settings: VmSettings,
    private readonly gpus: Pick<GpuDriver, 'passthrough'>,
    private readonly clock: Clock,
  ) {}

  /**
   * Returns why the host cannot run them, in words for the host owner; undefined if it can. A failure is remembered for
   * ten minutes.
   */
  async whyUnsupported(): Promise<string | undefined> {
    const { accelerator, runner } = this.settings;
    if (accelerator === null) return 'GPURENT_AGENT_VMS is "off"';
    if (!(await readImage(this.engine, runner)))
      return `the image ${runner} is not here: run scripts/build-vm-runner, see "Virtual machines" in docs/host-owner.md`;
    const ofGpus = await this.gpus.passthrough.whyUnavailable();
    if (ofGpus !== undefined) return `GPUs cannot be given to virtual machines: ${ofGpus}`;
    if (!this.probed || this.clock.monotonic() >= this.staleAt) {
      this.probed = this.probe(accelerator);
      this.staleAt = Infinity;
      // The failure can be temporary.
      if ((await this.probed) !== undefined) this.staleAt = this.clock.monotonic() + AGAIN_MS;
    }
    return this.probed;
  }

  private async probe(accelerator: Accelerator): Promise<string | undefined> {
    try {
      const { devices, groups } = await accessTo(accelerator);
      const { user, usernsMode } = await hostNamespace(this.engine);
      const job: Job = {
        task: 'probe',
        env: [`GPURENT_VM_ACCEL=${accelerator}`],
        user,
        host: { Devices: devices.map(asDevice), GroupAdd: groups.map(String), UsernsMode: usernsMode },
      };
      const { exitCode, lines } = await this.jobs.with(job, (container) =>
        this.jobs.run(container, PROBE_MS[accelerator]),
      );
      if (exitCode === 0 && lines.some((line) => line.includes(BOOTED))) return undefined;
      return `a small machine did not boot on ${accelerator}: ${lines.at(-1) ?? 'it printed nothing'}`;
    } catch (error) {
      return `a small machine did not boot on ${accelerator}: ${messageOf(error)}`;
    }
  }
}

/** Returns what QEMU needs to use the accelerator. Throws if the host does not have it, with what to do about it. */
export async function accessTo(accelerator: Accelerator): Promise<AcceleratorAccess> {
  if (accelerator === 'tcg') return { devices: [], groups: [] };
  const { gid, mode } = await stat(KVM).catch(() => {
    throw new Error(
      `there is no ${KVM}: switch virtualization on in the firmware, and load the module kvm_intel or kvm_amd`,
    );
  });
  const isOpen = (mode & OTHERS_READ_WRITE) === OTHERS_READ_WRITE;
  if (!isOpen && (gid === ROOT || (mode & GROUP_READ_WRITE) !== GROUP_READ_WRITE))
    throw new Error(
      `only root can open ${KVM}: give it to a group, "chgrp kvm ${KVM} && chmod 660 ${KVM}", as udev does`,
    );
  return { devices: [KVM], groups: isOpen ? [] : [gid] };
}
