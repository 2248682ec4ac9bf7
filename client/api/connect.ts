import createFetchClient, { type FetchResponse, type MaybeOptionalInit } from 'openapi-fetch';
import type { HttpMethod, PathsWithMethod, RequiredKeysOf } from 'openapi-typescript-helpers';
import { errorOf, UnreachableError } from './errors.js';
import { followEvents, type FollowOptions, type GpurentEvent } from './events.js';
import type { paths } from './gen/schema.js';
import { newIdempotencyKey } from './idempotency-key.js';
import { realWait, retrying, type Wait } from './retries.js';

export interface ConnectOptions {
  /** The address of the control plane, such as `https://gpus.example`. */
  url: string;
  /** An API key or the token of a session; without one only what is public can be called. */
  token?: string;
  /** Of a session: the organization for which it acts. */
  organizationId?: string;
  /** How often a request is sent at most, see {@link retrying}; 1: never again. */
  attempts?: number;
  /** Sent as `User-Agent`; sessions are listed by it. */
  userAgent?: string;
  /** Another fetch, for example one with a proxy. */
  fetch?: (request: Request) => Promise<Response>;
  /** How it waits before it sends a request again. */
  wait?: Wait;
}

/** What a call takes besides its path: optional where the path needs nothing. */
type InitParam<Init> = RequiredKeysOf<Init> extends never ? [init?: Init] : [init: Init];

type Method = 'get' | 'post' | 'put' | 'patch' | 'delete';

type DataOf<Operation, Init> =
  FetchResponse<
    Operation extends Record<string | number, unknown> ? Operation : never,
    Init,
    'application/json'
  > extends infer Answer
    ? Answer extends { data: infer Data; error?: never }
      ? [Data] extends [never]
        ? undefined
        : Data
      : never
    : never;

/** Sends a request to a path of the API. Returns the body of the answer; throws ApiError or UnreachableError. */
export type Call<M extends Method> = <
  Path extends PathsWithMethod<paths, M>,
  Init extends MaybeOptionalInit<paths[Path], M>,
>(
  path: Path,
  ...init: InitParam<Init>
) => Promise<DataOf<paths[Path][M], Init>>;

/** The paths of lists that come in pages. */
type ListPath = {
  [Path in keyof paths]: paths[Path] extends {
    get: { responses: { 200: { content: { 'application/json': { items: unknown[]; next_cursor?: string | null } } } } };
  }
    ? Path
    : never;
}[keyof paths];

type ItemOf<Path extends ListPath> = paths[Path] extends {
  get: { responses: { 200: { content: { 'application/json': { items: (infer Item)[] } } } } };
}
  ? Item
  : never;

/** A connection to a control plane. It keeps nothing open. */
export interface Gpurent {
  get: Call<'get'>;
  post: Call<'post'>;
  put: Call<'put'>;
  patch: Call<'patch'>;
  delete: Call<'delete'>;
  /** Reads a list page by page, and yields its items. A page is asked for when its first item is. */
  items: <Path extends ListPath, Init extends MaybeOptionalInit<paths[Path], 'get'>>(
    path: Path,
    ...init: InitParam<Init>
  ) => AsyncGenerator<ItemOf<Path>, void, undefined>;
  /** Yields what happens in the organization, each event once and in its order, until the signal is aborted. */
  events: (options?: FollowOptions) => AsyncGenerator<GpurentEvent, void, undefined>;
}

/** Operations that create at most one thing for each Idempotency-Key in every release: each request gets one, so that it can be sent again. */
export const WITH_IDEMPOTENCY_KEY: readonly string[] = ['/v1/instances', '/v1/billing/checkout-session'];

const ATTEMPTS = 4;

/** Returns a client of a control plane. Throws TypeError for a `url` that is none. */
export function connect(options: ConnectOptions): Gpurent {
  const baseUrl = new URL(options.url).href.replace(/\/+$/, '');
  const { attempts = ATTEMPTS, wait = realWait } = options;
  const send = options.fetch ?? ((request: Request) => globalThis.fetch(request));
  const api = createFetchClient<paths, 'application/json'>({
    baseUrl,
    headers: headersOf(options),
    // The API leads nowhere else, and a change that a proxy leads elsewhere would become a request that reads.
    redirect: 'manual',
    fetch: retrying(send, attempts, wait),
  });
  api.use({
    onRequest: ({ request, schemaPath }) => {
      if (request.method !== 'POST' || !WITH_IDEMPOTENCY_KEY.includes(schemaPath)) return;
      if (!request.headers.has('idempotency-key')) request.headers.set('idempotency-key', newIdempotencyKey());
    },
    onResponse: async ({ response }) => {
      if (!response.ok) throw await errorOf(response);
    },
    onError: ({ error }) =>
      error instanceof UnreachableError || !(error instanceof TypeError)
        ? undefined
        : new UnreachableError(baseUrl, error),
  });
  const request = api.request as (method: HttpMethod, path: string, init?: object) => Promise<{ data?: unknown }>;
  const call =
    (method: Method) =>
    async (path: string, init?: object): Promise<unknown> =>
      (await request(method, path, init)).data;
  const get = call('get');
  const gpurent = {
    get,
    post: call('post'),
    put: call('put'),
    patch: call('patch'),
    delete: call('delete'),
    items: (path: string, init?: object) => itemsOf((more) => get(path, withQuery(init, more)) as Promise<ListPage>),
    events: (following: FollowOptions = {}) => followEvents(api, wait, following),
  };
  return gpurent as unknown as Gpurent;
}

function headersOf({ token, organizationId, userAgent }: ConnectOptions): Record<string, string> {
  return {
    ...(token === undefined ? {} : { Authorization: `Bearer ${token}` }),
    ...(organizationId === undefined ? {} : { 'X-Org-Id': organizationId }),
    ...(userAgent === undefined ? {} : { 'User-Agent': userAgent }),
  };
}

interface ListPage {
  items: unknown[];
  next_cursor?: string | null;
}

const PAGE = 100;

async function* itemsOf(read: (query: object) => Promise<ListPage>): AsyncGenerator<unknown, void, undefined> {
  let cursor: string | null | undefined;
  do {
    const page = await read(cursor ? { limit: PAGE, cursor } : { limit: PAGE });
    yield* page.items;
    cursor = page.next_cursor;
  } while (cursor);
}

function withQuery(init: { params?: { query?: object } } = {}, query: object): object {
  return { ...init, params: { ...init.params, query: { ...query, ...init.params?.query, ...cursorIn(query) } } };
}

/** The cursor of the page that is read next takes precedence over one that the caller begins with. */
function cursorIn(query: { cursor?: string }): object {
  return query.cursor === undefined ? {} : { cursor: query.cursor };
}
