import { createHash, createHmac, timingSafeEqual } from 'node:crypto';

/** What a guarded port lets through. */
export interface PortGate {
  hostPort: number;
  /** Of the access token, SHA-256 in hex. */
  tokenHash: string;
}

/** What a visitor brings along. */
export interface ProxyRequest {
  /** Path and query. */
  url: string;
  /** Lower-case names, as Node has them. */
  headers: {
    host?: string | undefined;
    origin?: string | undefined;
    cookie?: string | undefined;
    authorization?: string | undefined;
  };
  address: string;
}

/** `cookie` is to be set, so that the next visit needs no token. */
export type Authorization = { admitted: false } | { admitted: true; cookie?: string };

const COOKIE = /^gpurent_\d+=/;

/**
 * Lets in who has the access token: as query parameter `token`, or as `Authorization: Bearer`. Who came in by the query gets
 * a cookie, which is good at this port and from this address only: the cookies of a host are sent to all of its ports, also to
 * those of other renters. A cookie does not speak for a page from elsewhere.
 */
export function authorize(gate: PortGate, { url, headers, address }: ProxyRequest): Authorization {
  if (gate.tokenHash === '') return { admitted: false };
  const cookie = `${cookieName(gate)}=${seal(gate, address)}`;
  const token = new URLSearchParams(url.split('?')[1] ?? '').get('token');
  if (token !== null && fits(gate, token)) return { admitted: true, cookie };
  const bearer = /^(?:Bearer|token) +(\S+)$/i.exec(headers.authorization ?? '')?.[1];
  if (bearer !== undefined && fits(gate, bearer)) return { admitted: true };
  const hasCookie = cookiesOf(headers.cookie).some((pair) => isEqual(pair, cookie));
  return { admitted: hasCookie && isSameOrigin(headers) };
}

/** A cookie header without the cookies of any gate; undefined where nothing is left. */
export function withoutGateCookies(header: string | undefined): string | undefined {
  return (
    cookiesOf(header)
      .filter((pair) => !COOKIE.test(pair))
      .join('; ') || undefined
  );
}

function cookieName({ hostPort }: PortGate): string {
  return `gpurent_${hostPort}`;
}

function seal({ hostPort, tokenHash }: PortGate, address: string): string {
  return createHmac('sha256', tokenHash).update(`${hostPort} ${address}`).digest('hex');
}

function fits({ tokenHash }: PortGate, token: string): boolean {
  return isEqual(createHash('sha256').update(token).digest('hex'), tokenHash);
}

function isSameOrigin({ host, origin }: ProxyRequest['headers']): boolean {
  if (origin === undefined) return true;
  return URL.canParse(origin) && new URL(origin).host === host;
}

function cookiesOf(header: string | undefined): string[] {
  return (header ?? '')
    .split(';')
    .map((pair) => pair.trim())
    .filter(Boolean);
}

function isEqual(one: string, other: string): boolean {
  const [first, second] = [Buffer.from(one), Buffer.from(other)];
  return first.length === second.length && timingSafeEqual(first, second);
}
