import type { Gpurent, Instance } from '../../api/index.js';
import { CliError, usageError } from '../errors/cli-error.js';
import { EXIT } from '../errors/exit-codes.js';

const ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
/** Shorter ones would rather be labels. */
const SHORTEST_PREFIX = 4;

export const isId = (text: string): boolean => ID.test(text);

/** Returns the instance with this id, beginning of an id, or label. Throws a CliError if there is none, or more than one. */
export async function findInstance(gpurent: Gpurent, name: string): Promise<Instance> {
  if (isId(name)) return gpurent.get('/v1/instances/{id}', { params: { path: { id: name } } });
  const { items } = await gpurent.get('/v1/instances');
  return only(items, name, 'instance', ({ id, label }) => ({ id, name: label }), 'gpurent ls');
}

/**
 * Returns the only one of these whose id begins with this, or that is called so. Throws a CliError if there is none, or more than one:
 * then it lists them.
 */
export function only<Thing>(
  things: readonly Thing[],
  wanted: string,
  kind: string,
  called: (thing: Thing) => { id: string; name: string | null },
  listing: string,
): Thing {
  const isMeant = (thing: Thing) => {
    const { id, name } = called(thing);
    return name === wanted || (wanted.length >= SHORTEST_PREFIX && id.startsWith(wanted.toLowerCase()));
  };
  const [found, ...others] = things.filter(isMeant);
  if (!found) throw new CliError(EXIT.notFound, `there is no ${kind} "${wanted}"`, `List them: ${listing}`);
  if (others.length === 0) return found;
  const listed = [found, ...others].map((thing) => `${called(thing).id} (${called(thing).name ?? 'no name'})`);
  throw usageError(`"${wanted}" can be more than one ${kind}: ${listed.join(', ')}`, 'Give more of the id.');
}

/** How people see an instance named: by its label, or the beginning of its id. */
export const nameOf = ({ id, label }: Pick<Instance, 'id' | 'label'>): string => label ?? id.slice(0, 8);
