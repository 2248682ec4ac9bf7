import type { Row } from '../../store/schema.js';
import type { AgentConnections } from '../connections/agent-connections.js';
import type { GpuDetails } from '../machines/machines.js';

type Machine = Row<'machines'>;
type Closable = Pick<Machine, 'id' | 'removed_at' | 'lost_at' | 'cordoned_at' | 'disk_quota' | 'quota_waived_at'>;

/** Returns why an offer of `numGpus` GPUs of the machine cannot be rented now, as text for operators; null if it can. */
export function obstacleOfOffer(
  connections: AgentConnections,
  machine: Machine,
  gpus: readonly GpuDetails[],
  numGpus: number,
): string | null {
  return obstacleOfMachine(connections, machine) ?? ofGpus(gpus, numGpus);
}

/** Returns why nothing of the machine can be rented now, as text for operators; null if its free GPUs can. */
export function obstacleOfMachine(connections: AgentConnections, machine: Closable): string | null {
  return ofMachine(machine) ?? ofHost(connections, machine.id);
}

function ofMachine(machine: Omit<Closable, 'id'>): string | null {
  if (machine.removed_at !== null) return 'the machine was removed';
  if (machine.lost_at !== null) return 'the machine was declared lost';
  if (machine.cordoned_at !== null) return 'the machine is cordoned';
  if (machine.disk_quota !== 'enforced' && machine.quota_waived_at === null)
    return 'the machine does not enforce disk quotas, and no operator has waived them';
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
  const disputed = count((gpu) => isUnheld(gpu) && gpu.owned === 0);
  const unhealthy = fitting.length - free - rented - apart - disputed;
  const others = disputed === 0 ? '' : `${disputed} belong to other machines, `;
  return `the offer needs ${numGpus} GPU(s); of the machine's ${fitting.length}, ${rented} are rented, ${apart} in quarantine, ${others}${unhealthy} not healthy, ${free} free`;
}

/** Returns the GPUs of the model that the machine's offers have: that of its first GPU. */
export function gpusOfOffers(gpus: readonly GpuDetails[]): GpuDetails[] {
  return gpus.filter((gpu) => gpu.model === gpus[0]?.model);
}

/**
 * Returns the GPUs that a deploy can claim: healthy, not claimed, not in quarantine, of this machine and no other, and of the model of
 * the machine's offers.
 */
export function freeGpus(gpus: readonly GpuDetails[]): GpuDetails[] {
  return gpusOfOffers(gpus).filter(isFree);
}

export function isFree(gpu: GpuDetails): boolean {
  return gpu.healthy === 1 && gpu.owned === 1 && isUnheld(gpu);
}

function isUnheld(gpu: GpuDetails): boolean {
  return gpu.instance_id === null && gpu.quarantine_id === null;
}
