import { Type } from 'typebox';
import type { GpuDetails } from '../../services/machines/machines.js';
import { flag, integer, nullable, text, uuid } from '../schema/schemas.js';

/** A GPU as operators see it. */
export const Gpu = Type.Object({
  uuid: text('The vendor id of the GPU'),
  model: text('The model'),
  memory_mb: integer('The memory in MiB'),
  healthy: flag('Whether the host reports the GPU as usable, and it belongs to this machine'),
  reason: nullable(text('Why it is not healthy; null: it is healthy')),
  disputed_with: nullable(
    Type.Object(
      { id: uuid('The id of that machine'), name: text('The name of that machine') },
      { description: 'The other machine that the GPU belongs to, so that nobody can rent it here; null: this one' },
    ),
  ),
  missing: flag('Whether its host has listed it before, and the driver of the host does not list it now'),
  shares_memory: flag('Whether its memory is a part of the memory of the machine, which instances do not get'),
  instance_id: nullable(uuid('The id of the instance that holds it; null: none')),
  quarantine_id: nullable(uuid('The id of the workload in quarantine that holds it; null: none')),
});

/** Returns what the API shows of a GPU. One that belongs to another machine is not healthy here. */
export function gpuView({ owner_id: id, owner_name: name, ...rest }: GpuDetails) {
  const gpu = { ...rest, missing: rest.missing === 1, shares_memory: rest.shares_memory === 1 };
  const healthy = gpu.healthy === 1 && gpu.owned === 1;
  if (id === null || name === null) return { ...gpu, healthy, disputed_with: null };
  const reason = `it belongs to machine ${name} (${id}), which reported it first; if the card was moved here, assign it to this machine`;
  return {
    ...gpu,
    healthy,
    reason: gpu.reason === null ? reason : `${gpu.reason}; ${reason}`,
    disputed_with: { id, name },
  };
}
