import type { components, Gpurent } from '../../api/index.js';
import { isId, only } from '../instances/find.js';

type Machine = components['schemas']['OperatedMachine'];
type Organization = components['schemas']['OperatedOrganization'];

/** Returns the machine with this id, beginning of an id, or name. Throws a CliError if there is none, or more than one. */
export async function findMachine(gpurent: Gpurent, name: string): Promise<Machine> {
  if (isId(name)) return gpurent.get('/v1/operator/machines/{id}', { params: { path: { id: name } } });
  const { items } = await gpurent.get('/v1/operator/machines');
  return only(items, name, 'machine', (machine) => machine, 'gpurent machines');
}

/** Returns the id of the organization with this id, beginning of an id, or name. Throws a CliError if there is none, or more than one. */
export async function findOrganization(gpurent: Gpurent, name: string): Promise<Pick<Organization, 'id' | 'name'>> {
  if (isId(name)) return gpurent.get('/v1/operator/organizations/{id}', { params: { path: { id: name } } });
  const { items } = await gpurent.get('/v1/operator/organizations');
  return only(items, name, 'organization', (organization) => organization, 'gpurent orgs');
}
