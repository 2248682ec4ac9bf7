import type { LookupAddress } from 'node:dns';
import { request as requestPlain, type IncomingMessage } from 'node:http';
import { Agent, request } from 'node:https';
import { isIP, type LookupFunction } from 'node:net';
import { createSecureContext, rootCertificates } from 'node:tls';
import { isLoopback } from '../../shared/network/addresses.js';
import { mayReach, ownAddresses } from '../../shared/network/reachable.js';
import {
  MOST_ANSWER_BYTES,
  WebhookFailure,
  type PostWebhook,
  type WebhookAnswer,
  type WebhookRequest,
} from '../domain/webhook.js';
import { askingNameServers, type ResolveName } from './resolve-name.js';

export interface OutboundOptions {
  /** Forbidden networks that can be reached all the same. */
  allowed: readonly string[];
  resolve?: ResolveName;
  /** Returns this machine's own addresses, which only `allowed` makes reachable. */
  own?: () => readonly string[];
  /** Authorities (PEM) that are trusted beside those that Node knows. */
  trusted?: readonly string[];
  /** Whether plain http is allowed to addresses that are all loopback, because an operator has chosen the URL. */
  isPlainAllowed?: boolean;
}

/** Most addresses of a name that are vetted and tried: a name can have any number. */
export const MOST_ADDRESSES = 8;
/** How long one address is tried before the next one; the last one is tried to the end of the attempt. */
export const ONE_ADDRESS_MS = 3_000;
export const MOST_HEADER_BYTES = 16 * 1024;
/** Most answers with a status below 200 that can come before the real one. */
const MOST_INFORMATIONAL = 8;
const MOST_TLS_SESSIONS = 500;

/**
 * Returns the function that sends webhooks. It resolves the name once for each attempt, refuses it if any of its addresses is forbidden,
 * and connects to exactly these addresses. It follows no redirect, and closes the connection once it has read the beginning of the answer.
 */
export function webhookPoster({
  allowed,
  resolve = askingNameServers(),
  own = ownAddresses,
  trusted,
  isPlainAllowed = false,
}: OutboundOptions): PostWebhook {
  let agent: Agent | undefined;
  const vetted = async (host: string, signal: AbortSignal): Promise<string[]> => {
    const found = isIP(host) === 0 ? await resolve(host, signal) : [host];
    signal.throwIfAborted();
    if (found.length === 0) throw new WebhookFailure('unresolved');
    const addresses = found.slice(0, MOST_ADDRESSES);
    const ours = own();
    if (addresses.every((address) => mayReach(address, allowed, ours))) return addresses;
    throw new WebhookFailure('forbidden_address');
  };
  return async (asked) => {
    const url = new URL(asked.url);
    const isPlain = isPlainAllowed && url.protocol === 'http:';
    if (url.protocol !== 'https:' && !isPlain) throw new WebhookFailure('forbidden_address');
    const host = url.hostname.replace(/^\[(.*)\]$/, '$1');
    const addresses = await untilAborted(asked.signal, vetted(host, asked.signal));
    if (isPlain && !addresses.every(isLoopback)) throw new WebhookFailure('forbidden_address');
    if (!isPlain) agent ??= agentThatTrusts(trusted);
    return exchange(asked, url, host, addresses, isPlain ? undefined : agent);
  };
}

/** Made at the first use: it reads every authority that Node knows. */
export function agentThatTrusts(authorities: readonly string[] | undefined): Agent {
  return new Agent({
    keepAlive: false,
    // A session that is resumed spares both sides most of a handshake.
    maxCachedSessions: MOST_TLS_SESSIONS,
    secureContext: createSecureContext(authorities ? { ca: [...rootCertificates, ...authorities] } : {}),
  });
}

/** Rejects with the reason of the signal as soon as it is aborted. */
export function untilAborted<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason as Error);
    if (signal.aborted) onAbort();
    signal.addEventListener('abort', onAbort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort));
  });
}

/** Answers every question of the socket with the addresses that were vetted. */
export function answering(addresses: readonly string[]): LookupFunction {
  const answers: LookupAddress[] = addresses.map((address) => ({ address, family: isIP(address) }));
  return (_name, { all }, callback) => {
    const [first = { address: '', family: 0 }] = answers;
    if (all === true) callback(null, answers);
    else callback(null, first.address, first.family);
  };
}

/** Sends the request, in plain text without an agent, and reads the beginning of its answer. With a status, the attempt cannot fail any more. */
function exchange(
  { headers, body, signal }: WebhookRequest,
  url: URL,
  host: string,
  addresses: readonly string[],
  agent: Agent | undefined,
): Promise<WebhookAnswer> {
  signal.throwIfAborted();
  return new Promise((resolve, reject) => {
    const parts: Buffer[] = [];
    let head: { status: number; retryAfter: string | undefined } | undefined;
    let size = 0;
    let informational = 0;
    const options = {
      method: 'POST',
      host,
      port: url.port || (agent ? 443 : 80),
      path: url.pathname + url.search,
      agent: agent ?? false,
      headers: {
        ...headers,
        host: url.host,
        'content-length': Buffer.byteLength(body),
      },
      lookup: answering(addresses),
      autoSelectFamilyAttemptTimeout: ONE_ADDRESS_MS,
      maxHeaderSize: MOST_HEADER_BYTES,
    };
    const sent = agent ? request(options) : requestPlain(options);
    const end = (failure: unknown) => {
      signal.removeEventListener('abort', onAbort);
      sent.destroy();
      if (head === undefined) reject(failure instanceof Error ? failure : new Error(String(failure)));
      else resolve({ ...head, text: textOf(parts) });
    };
    const onAbort = () => end(signal.reason);
    const onAnswer = (answer: IncomingMessage) => {
      head = { status: answer.statusCode ?? 0, retryAfter: answer.headers['retry-after'] };
      answer.on('data', (part: Buffer) => {
        parts.push(part);
        size += part.length;
        if (size >= MOST_ANSWER_BYTES) end(undefined);
      });
      for (const event of ['end', 'error', 'close']) answer.once(event, () => end(undefined));
    };
    signal.addEventListener('abort', onAbort, { once: true });
    sent.on('information', () => {
      informational += 1;
      if (informational > MOST_INFORMATIONAL) end(new WebhookFailure('bad_answer'));
    });
    sent.once('response', onAnswer);
    sent.on('error', (error) => end(failureOf(error)));
    sent.once('close', () => end(head === undefined ? new WebhookFailure('unreachable') : undefined));
    sent.end(body);
  });
}

function textOf(parts: readonly Buffer[]): string {
  return Buffer.concat(parts).subarray(0, MOST_ANSWER_BYTES).toString('utf8');
}

/** Certificates have many error codes, connections and HTTP have few. */
function failureOf(error: Error): WebhookFailure {
  const { code = '' } = error as { code?: string };
  if (code.startsWith('HPE_')) return new WebhookFailure('bad_answer', { cause: error });
  if (/CERT|ISSUER|SIGNATURE|CRL|^ERR_TLS|^ERR_SSL|^EPROTO/.test(code))
    return new WebhookFailure('certificate', { cause: error });
  return new WebhookFailure('unreachable', { cause: error });
}
