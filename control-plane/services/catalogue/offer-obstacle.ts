import type { Row } from '../../store/schema.js';
import type { AgentConnections } from '../connections/agent-connections.js';
import type { GpuDetails } from '../machines/machines.js';

type Machine = Row<'machines'>;

/** Why an offer of so many GPUs of the machine cannot be rented now, in words for its operator; null: it can. */
export function obstacleOfOffer(
  connections: AgentConnections,
  machine: Machine,
  gpus: readonly GpuDetails[],
  numGpus: number,
): string | null {
  return ofMachine(machine) ?? ofHost(connections, machine.id) ?? ofGpus(gpus, numGpus);
}

function ofMachine(machine: Machine): string | null {
  if (machine.removed_at !== null) return 'the machine was removed';
  if (machine.lost_at !== null) return 'the machine was declared lost';
  if (machine.cordoned_at !== null) return 'the machine is cordoned';
  if (machine.disk_quota !== 'enforced' && machine.quota_waived_at === null)
    return 'nothing holds the disks of renters to their size on the machine, and no operator has waived it';
  return null;
}

function ofHost(connections: AgentConnections, machineId: string): string | null {
  switch (connections.troubleOf(machineId)) {
    case 'host_away':
      return 'the host is not connected';
    case 'docker_down':
      return 'Docker on the host does not answer';
    case 'obstacle':
      return `the host takes nothing new: ${connections.obstacleOf(machineId)}`;
    case null:
      return null;
  }
}

function ofGpus(gpus: readonly GpuDetails[], numGpus: number): string | null {
  const free = freeGpus(gpus).length;
  if (free >= numGpus) return null;
  const fitting = gpusOfOffers(gpus);
  const count = (is: (gpu: GpuDetails) => boolean) => fitting.filter(is).length;
  const rented = count((gpu) => gpu.instance_id !== null);
  const apart = count((gpu) => gpu.instance_id === null && gpu.quarantine_id !== null);
  const unhealthy = fitting.length - free - rented - apart;
  return `the offer asks for ${numGpus} GPU(s): of the ${fitting.length} of the machine ${rented} are rented, ${apart} in quarantine, ${unhealthy} not healthy, ${free} free`;
}

/** GPUs of the model that the machine's offers name. */
export function gpusOfOffers(gpus: readonly GpuDetails[]): GpuDetails[] {
  return gpus.filter((gpu) => gpu.model === gpus[0]?.model);
}

/** GPUs that a deploy may take: healthy, unclaimed, and of the model that the machine's offers name. */
export function freeGpus(gpus: readonly GpuDetails[]): GpuDetails[] {
  return gpusOfOffers(gpus).filter(isFree);
}

export function isFree(gpu: GpuDetails): boolean {
  return gpu.healthy === 1 && gpu.instance_id === null && gpu.quarantine_id === null;
}
