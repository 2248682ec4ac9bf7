import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { notFound, PUBLIC } from '../access/policy.js';
import { namesETag } from '../answers/remembered-bodies.js';
import { text } from '../schema/schemas.js';
import { encodedFor, type ConsoleFile, type ConsoleFiles } from './files.js';

/** What the addresses of the console's pages begin with. */
const NAMES: readonly string[] = [
  'market',
  'deploy',
  'instances',
  'templates',
  'billing',
  'keys',
  'team',
  'webhooks',
  'profile',
  'operator',
];

/** The addresses of the pages. Each answers the same file, whose script shows the page, or that there is none. */
const PATHS: readonly string[] = ['/', ...NAMES.flatMap((name) => [`/${name}`, `/${name}/*`])];

/** What the console may do: run its own files and send requests to this control plane. */
export const CONTENT_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self' data:",
  "font-src 'self'",
  "form-action 'self'",
  "frame-ancestors 'none'",
  "base-uri 'none'",
  "require-trusted-types-for 'script'",
].join('; ');

const HEADERS = {
  'Referrer-Policy': 'no-referrer',
  'X-Content-Type-Options': 'nosniff',
  'Cross-Origin-Resource-Policy': 'same-origin',
  Vary: 'Accept-Encoding',
};
const PAGE_HEADERS = {
  ...HEADERS,
  'Content-Security-Policy': CONTENT_POLICY,
  'X-Frame-Options': 'DENY',
  'Cross-Origin-Opener-Policy': 'same-origin',
  // The page names the assets of its release.
  'Cache-Control': 'no-cache',
};
const ASSET_HEADERS = { ...HEADERS, 'Cache-Control': 'public, max-age=31536000, immutable' };

/** Returns what answers a browser at an address without a page: the console, which says so, with status 404. */
export function consolePageNotFound({ page }: ConsoleFiles) {
  return ({ headers }: FastifyRequest, reply: FastifyReply): FastifyReply => {
    const { body, encoding } = encodedFor(page, headers['accept-encoding']);
    // Programs get another answer at the same address.
    void reply.code(404).headers({ ...PAGE_HEADERS, Vary: 'Accept, Accept-Encoding' });
    if (encoding) void reply.header('Content-Encoding', encoding);
    return reply.type(page.type).send(body);
  };
}

/** Returns where a browser goes first whose session is to be renewed; undefined: nowhere. */
type RenewFirst = (request: FastifyRequest, reply: FastifyReply) => Promise<string | undefined>;

/** Serves the web console out of memory: its page at each of its addresses, and its assets. It asks for no credential: its script does. */
export function consoleRoutes({ page, assets }: ConsoleFiles, renewFirst: RenewFirst) {
  return (app: FastifyInstance): void => {
    const config = { policy: PUBLIC } as const;
    for (const [index, path] of PATHS.entries()) {
      const about = { hide: true, operationId: `showConsole${index}`, summary: 'A page of the console' };
      app.get(path, { config, schema: { ...about, response: { 200: text('The page') } } }, async (request, reply) => {
        void reply.headers(PAGE_HEADERS);
        const next = await renewFirst(request, reply);
        if (next !== undefined) return reply.header('Cache-Control', 'no-store').redirect(next, 303);
        return send(page, request, reply);
      });
    }
    const about = { hide: true, operationId: 'getConsoleAsset', summary: 'A file of the console' };
    const params = Type.Object({ name: text('The name of the file') });
    app.get<{ Params: { name: string } }>(
      '/assets/:name',
      { config, schema: { ...about, params, response: { 200: text('The file') } } },
      (request, reply) => {
        const asset = assets.get(request.params.name);
        if (!asset) throw notFound();
        void reply.headers(ASSET_HEADERS);
        return send(asset, request, reply);
      },
    );
  };
}

/** Sends a file in a form that the client takes, or 304 if it has that form. */
function send(file: ConsoleFile, { headers }: FastifyRequest, reply: FastifyReply): FastifyReply {
  const { body, encoding } = encodedFor(file, headers['accept-encoding']);
  const etag = `"${file.hash}${encoding ? `-${encoding}` : ''}"`;
  void reply.header('ETag', etag);
  const known = headers['if-none-match'];
  if (known !== undefined && namesETag(known, etag)) return reply.code(304).send();
  if (encoding) void reply.header('Content-Encoding', encoding);
  return reply.type(file.type).send(body);
}
