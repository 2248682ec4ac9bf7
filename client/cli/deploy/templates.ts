import type { components, Gpurent } from '../../api/index.js';
import { isId, only } from '../instances/find.js';

type Template = components['schemas']['Template'];

/** Returns the template with this id, beginning of an id, or name. Throws a CliError if there is none, or more than one. */
export async function findTemplate(gpurent: Gpurent, name: string): Promise<Template> {
  if (isId(name)) return gpurent.get('/v1/templates/{id}', { params: { path: { id: name } } });
  const { items } = await gpurent.get('/v1/templates');
  const found = only(items, name, 'template', (template) => template, 'gpurent templates');
  return gpurent.get('/v1/templates/{id}', { params: { path: { id: found.id } } });
}
