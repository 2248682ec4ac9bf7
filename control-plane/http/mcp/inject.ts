import type { FastifyInstance, InjectOptions } from 'fastify';
import { connect, type Gpurent } from '../../../client/api/index.js';

/** Whose requests they are. */
export interface Sender {
  token: string;
  /** The client's address at present: a key can be restricted to some, and the audit log names it. */
  address: () => string;
}

/** Requests never leave this process; the address is there because a request has one. */
export const NOWHERE = 'http://gpurent.internal';
const WITHOUT_BODY = [204, 304];

/**
 * Returns a client of the API that hands its requests to this server itself, with the caller's own key. So every right, limit, cap and
 * entry of the audit log is the same as over the network.
 */
export function connectWithin(app: FastifyInstance, { token, address }: Sender): Gpurent {
  const send = async (request: Request): Promise<Response> => {
    const { pathname, search } = new URL(request.url);
    const payload = await request.text();
    const answer = await app.inject({
      method: request.method as NonNullable<InjectOptions['method']>,
      url: pathname + search,
      headers: Object.fromEntries(request.headers),
      remoteAddress: address(),
      ...(payload === '' ? {} : { payload }),
    });
    const headers = Object.entries(answer.headers).map(([name, value]): [string, string] => [name, String(value)]);
    const body = WITHOUT_BODY.includes(answer.statusCode) ? null : answer.body;
    return new Response(body, { status: answer.statusCode, headers });
  };
  // The client of the MCP server decides whether to try again: it gets every refusal at once.
  return connect({ url: NOWHERE, token, fetch: send, attempts: 1, userAgent: 'gpurent-mcp' });
}
