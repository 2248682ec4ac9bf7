import { Agent as PlainAgent, request as plainRequest, type IncomingMessage, type RequestOptions } from 'node:http';
import { request as tlsRequest } from 'node:https';
import { isIP } from 'node:net';
import { isLoopback } from '../../shared/network/addresses.js';
import { mayReach, ownAddresses } from '../../shared/network/reachable.js';
import { IssuerFailure } from '../domain/identity/company.js';
import {
  agentThatTrusts,
  answering,
  MOST_ADDRESSES,
  MOST_HEADER_BYTES,
  ONE_ADDRESS_MS,
  untilAborted,
  type OutboundOptions,
} from './post-webhook.js';
import { askingNameServers } from './resolve-name.js';

export interface IssuerRequest {
  method: string;
  headers: Record<string, string>;
  body?: unknown;
  signal: AbortSignal;
}

/** Sends a request about the sign-in at an issuer. Rejects with IssuerFailure. */
export type FetchFromIssuer = (issuer: string, address: string, asked: IssuerRequest) => Promise<Response>;

/** Sends nothing, in a drill. */
export const fetchNothing: FetchFromIssuer = async () => {
  throw new IssuerFailure('unreachable', 'a drill on a restored copy reaches no issuer');
};

/** Longer answers of issuers are refused: keys and tokens of people in thousands of groups fit. */
const MOST_ANSWER_BYTES = 256 * 1024;

/**
 * Returns the function that sends requests to issuers. The operator has chosen the host of the issuer, so it may be anywhere. Other hosts
 * that the issuer names must not be in forbidden networks, unless `allowed` has them. Plain http reaches only an issuer on loopback. No
 * redirect is followed.
 */
export function issuerFetcher(options: OutboundOptions): FetchFromIssuer {
  const { allowed, resolve = askingNameServers(), own = ownAddresses, trusted } = options;
  let agent: ReturnType<typeof agentThatTrusts> | undefined;
  const plainAgent = new PlainAgent({ keepAlive: false });
  const addressesOf = async (host: string, isChosen: boolean, signal: AbortSignal): Promise<string[]> => {
    const found = host === 'localhost' ? ['127.0.0.1', '::1'] : isIP(host) === 0 ? await resolve(host, signal) : [host];
    if (found.length === 0) throw unreachable(`${host} has no address`);
    const addresses = found.slice(0, MOST_ADDRESSES);
    const ours = own();
    if (isChosen || addresses.every((address) => mayReach(address, allowed, ours))) return addresses;
    throw unreachable(`${host} is in a network that issuers must not lead to`);
  };
  return async (issuer, address, asked) => {
    const [url, chosen] = [new URL(address), new URL(issuer)];
    const host = hostOf(url);
    const isPlain = url.protocol === 'http:' && isLoopback(host) && chosen.protocol === 'http:';
    if (url.protocol !== 'https:' && !isPlain) throw unreachable(`${address} has no https`);
    const finding = addressesOf(host, host === hostOf(chosen), asked.signal);
    const addresses = await untilAborted(asked.signal, finding);
    if (!isPlain) agent ??= agentThatTrusts(trusted);
    const options = {
      host,
      port: url.port || (isPlain ? 80 : 443),
      agent: isPlain ? plainAgent : agent,
      lookup: answering(addresses),
      autoSelectFamilyAttemptTimeout: ONE_ADDRESS_MS,
    };
    return exchange(url, asked, options);
  };
}

function hostOf({ hostname }: URL): string {
  return hostname.replace(/^\[(.*)\]$/, '$1');
}

function unreachable(message: string, cause?: unknown): IssuerFailure {
  return new IssuerFailure('unreachable', message, { cause });
}

/** Sends the request and reads its whole answer. */
function exchange(
  url: URL,
  { method, headers, body, signal }: IssuerRequest,
  where: RequestOptions,
): Promise<Response> {
  const content = bodyOf(body);
  return new Promise((resolve, reject) => {
    const fail = (error: unknown) => {
      sent.destroy();
      reject(error instanceof IssuerFailure ? error : unreachable(`${url.host} does not answer`, error));
    };
    const sent = (url.protocol === 'https:' ? tlsRequest : plainRequest)({
      ...where,
      method,
      path: url.pathname + url.search,
      signal,
      maxHeaderSize: MOST_HEADER_BYTES,
      headers: {
        ...headers,
        host: url.host,
        ...lengthOf(content),
      },
    });
    sent.on('error', fail);
    sent.once('response', (answer) => {
      readAll(answer).then((text) => resolve(responseOf(answer, text)), fail);
    });
    sent.end(content);
  });
}

/** The library sends forms, and nothing else that is more than a text. */
function bodyOf(body: unknown): string | undefined {
  if (body === undefined || body === null) return undefined;
  if (typeof body === 'string' || body instanceof URLSearchParams) return body.toString();
  throw new Error('a request to an issuer has a body of another kind');
}

function lengthOf(content: string | undefined): Record<string, string> {
  return content === undefined ? {} : { 'content-length': String(Buffer.byteLength(content)) };
}

async function readAll(answer: IncomingMessage): Promise<Buffer> {
  const parts: Buffer[] = [];
  let size = 0;
  for await (const part of answer as AsyncIterable<Buffer>) {
    size += part.length;
    if (size > MOST_ANSWER_BYTES) throw unreachable(`an answer has more than ${MOST_ANSWER_BYTES} bytes`);
    parts.push(part);
  }
  return Buffer.concat(parts);
}

function responseOf({ statusCode = 0, headers }: IncomingMessage, body: Buffer): Response {
  const isEmpty = [204, 205, 304].includes(statusCode);
  const given = Object.entries(headers).filter((entry): entry is [string, string] => typeof entry[1] === 'string');
  return new Response(isEmpty ? null : new Uint8Array(body), { status: statusCode, headers: given });
}
