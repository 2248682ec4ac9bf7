import { ProtocolError, ProtocolErrorCode, ResourceTemplate, type Variables } from '@modelcontextprotocol/server';
import { ApiError, UnreachableError, type Gpurent } from '../api/index.js';
import { lastLines } from './log-lines.js';
import type { Toolbox } from './tool.js';
import { NOTICE, shown, untrusted } from './untrusted.js';
import { instanceView, nameOf } from './views.js';

const MOST_LISTED = 100;
const TAIL = 200;

/** Says to clients that what a resource contains was written by others. */
const UNTRUSTED = { 'gpurent/untrusted': true };

/** Adds the instances and their output as resources, marked as text of strangers. */
export function addResources({ server, gpurent, onFault }: Toolbox): void {
  const known = <Result>(work: Promise<Result>): Promise<Result> =>
    work.catch((error: unknown) => Promise.reject(shownError(error, onFault)));
  const add = (
    kind: string,
    suffix: string,
    mimeType: string,
    read: (gpurent: Gpurent, id: string) => Promise<string>,
  ) => {
    const list = () => known(listed(gpurent, kind, suffix, mimeType));
    server.registerResource(
      kind,
      new ResourceTemplate(`gpurent://instances/{id}${suffix}`, { list }),
      { title: kind, mimeType, description: `The ${kind} of the organization. ${NOTICE}`, _meta: UNTRUSTED },
      async (uri, variables) => {
        const text = await known(read(gpurent, idIn(variables)));
        return { contents: [{ uri: uri.href, mimeType, text: `${NOTICE}\n${text}`, _meta: UNTRUSTED }] };
      },
    );
  };
  add('instances', '', 'text/plain', async (api, id) =>
    JSON.stringify(instanceView(await api.get('/v1/instances/{id}', { params: { path: { id } } }))),
  );
  add('logs', '/logs', 'text/plain', async (api, id) => {
    const query = { tail: TAIL };
    return lastLines((await api.get('/v1/instances/{id}/logs', { params: { path: { id }, query } })).lines).text;
  });
}

async function listed(gpurent: Gpurent, kind: string, suffix: string, mimeType: string) {
  const { items } = await gpurent.get('/v1/instances', { params: { query: { limit: MOST_LISTED } } });
  const resources = items.map((instance) => ({
    uri: `gpurent://instances/${instance.id}${suffix}`,
    name: `${kind}/${instance.id}`,
    title: untrusted(nameOf(instance)),
    mimeType,
    _meta: UNTRUSTED,
  }));
  return { resources };
}

function idIn({ id }: Variables): string {
  return typeof id === 'string' ? decodeURIComponent(id) : '';
}

function shownError(error: unknown, onFault: (error: unknown) => void): ProtocolError {
  if (error instanceof ApiError)
    return new ProtocolError(
      ProtocolErrorCode.InvalidParams,
      `${shown(error.code)}: ${untrusted(error.message, 1_000)}`,
    );
  if (error instanceof UnreachableError)
    return new ProtocolError(ProtocolErrorCode.InternalError, shown(error.message));
  onFault(error);
  return new ProtocolError(ProtocolErrorCode.InternalError, 'an internal error occurred');
}
