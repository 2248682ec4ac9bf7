import type { Clock } from '../../shared/clock.js';
import { DAY_MS } from '../../shared/time.js';
import type { AgentConfig } from '../config.js';
import { DEADLINE_MS, Engine, imageOf } from '../runtime/docker/engine.js';
import type { VmSupport } from '../runtime/docker/vm/vm-support.js';
import { doubtful, good, type Check } from './finding.js';

const OLD_DAYS = 60;

/** Returns the check whether virtual machines run here; `support` finds out by booting a small one. */
export function vmChecks(
  { vms, dockerSocket, gpus: source }: AgentConfig,
  clock: Clock,
  support: Pick<VmSupport, 'whyUnsupported'>,
): Check[] {
  if (vms.accelerator === null) return [];
  const look = async () => {
    const engine = new Engine(dockerSocket, clock);
    const obstacle = await support.whyUnsupported();
    if (obstacle !== undefined)
      return [
        doubtful(
          obstacle,
          'until this is fixed, this host is not offered for vm templates; set GPURENT_AGENT_VMS=off if that is what you want',
        ),
      ];
    const booted =
      vms.accelerator === 'kvm'
        ? good('a test machine has booted')
        : doubtful(
            'a test machine has booted, on an emulated processor',
            'set GPURENT_AGENT_VMS=kvm: emulation is only for trials',
          );
    const { Created } = await engine.call('inspect the image', DEADLINE_MS.inspect, (docker) =>
      imageOf(docker, vms.runner).inspect(),
    );
    const days = Math.floor((clock.now() - Date.parse(Created)) / DAY_MS);
    const age =
      days <= OLD_DAYS
        ? good(`the runner image was built ${days} days ago`)
        : doubtful(
            `the runner image was built ${days} days ago`,
            'run scripts/build-vm-runner again for newer fixes, see "Virtual machines" in docs/host-owner.md',
          );
    if (source.kind !== 'nvidia') return [booted, age];
    const advice = 'before renters do, deploy a machine on each GPU and try stop, start and destroy';
    return [booted, age, doubtful('GPU passthrough (VFIO) is experimental', advice)];
  };
  return [{ name: 'virtual machines', look }];
}
