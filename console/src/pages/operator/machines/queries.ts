import { queryOptions } from '@tanstack/react-query';
import { api } from '../../../data/api/api.js';
import type { MachineFindings } from '../models.js';
import { LOOK_AGAIN_MS } from '../queries.js';

/** What the doctor has found on the host of a machine. */
export const doctorFindings = (id: string) =>
  queryOptions({
    queryKey: ['operator', 'findings', id],
    queryFn: ({ signal }) => readFindings(id, signal),
    refetchInterval: LOOK_AGAIN_MS,
  });

export function readFindings(id: string, signal: AbortSignal): Promise<MachineFindings> {
  return api.get('/v1/operator/machines/{id}/findings', { params: { path: { id } }, signal });
}
