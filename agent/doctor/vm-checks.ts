import { randomUUID } from 'node:crypto';
import type { Clock } from '../../shared/clock.js';
import { DAY_MS } from '../../shared/time.js';
import type { AgentConfig } from '../config.js';
import type { GpuDriver } from '../host/gpus/driver.js';
import { DEADLINE_MS, Engine, imageOf } from '../runtime/docker/engine.js';
import { RunnerJobs } from '../runtime/docker/vm/runner-job.js';
import { VmSupport } from '../runtime/docker/vm/vm-support.js';
import { doubtful, good, type Check } from './finding.js';

const OLD_DAYS = 60;

/** Whether virtual machines run here: a small one is booted. */
export function vmChecks({ vms, dockerSocket, gpus: source }: AgentConfig, gpus: GpuDriver, clock: Clock): Check[] {
  if (vms.accelerator === null) return [];
  const look = async () => {
    const engine = new Engine(dockerSocket, clock);
    const jobs = new RunnerJobs(engine, randomUUID(), vms.runner);
    const obstacle = await new VmSupport(engine, jobs, vms, gpus, clock).obstacle();
    if (obstacle !== undefined)
      return [doubtful(obstacle, 'until then vm templates are not offered here; GPURENT_AGENT_VMS=off keeps it so')];
    const booted =
      vms.accelerator === 'kvm'
        ? good('one has booted')
        : doubtful(
            'one has booted, on an emulated processor',
            'set GPURENT_AGENT_VMS=kvm: emulation is for trying out',
          );
    const { Created } = await engine.call('inspect the image', DEADLINE_MS.inspect, (docker) =>
      imageOf(docker, vms.runner).inspect(),
    );
    const days = Math.floor((clock.now() - Date.parse(Created)) / DAY_MS);
    const age =
      days <= OLD_DAYS
        ? good(`what they run in was built ${days} days ago`)
        : doubtful(`what they run in was built ${days} days ago`, 'run scripts/build-vm-runner again, for its fixes');
    if (source.kind !== 'nvidia') return [booted, age];
    const advice = 'try a machine of your own on each GPU, over stop, start and destroy, before strangers do';
    return [booted, age, doubtful('giving GPUs to them (VFIO) is experimental', advice)];
  };
  return [{ name: 'virtual machines', look }];
}
