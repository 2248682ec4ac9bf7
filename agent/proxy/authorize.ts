import { createHash, createHmac, timingSafeEqual } from 'node:crypto';

/** The check at one guarded port. */
export interface PortGate {
  hostPort: number;
  /** SHA-256 of the access token, in hex. */
  tokenHash: string;
}

/** The parts of a visitor's request that the check reads. */
export interface ProxyRequest {
  /** Path and query. */
  url: string;
  /** By their names in lower case, as Node has them. */
  headers: {
    host?: string | undefined;
    origin?: string | undefined;
    cookie?: string | undefined;
    authorization?: string | undefined;
  };
  address: string;
}

/** The result of the check. `cookie` must be set in the answer, so that the next request needs no token. */
export type Authorization = { admitted: false } | { admitted: true; cookie?: string };

/** The cookies of gates, and those of a control plane at the same name: browsers send the cookies of a name to all of its ports. */
const COOKIE = /^(gpurent_\d+|__Host-gpurent[\w-]*)\s*=/;

/**
 * Admits visitors with the access token, as query parameter `token` or as `Authorization: Bearer`. A visitor with the
 * query parameter gets a cookie, which is valid at this port and from this address only, because browsers send the
 * cookies of a host to all of its ports, also to those of other renters. A cookie is not valid in a request from a page
 * of another origin.
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

/** Removes the cookies of all gates and of control planes from a cookie header. Returns undefined if nothing is left. */
export function withoutOwnCookies(header: string | undefined): string | undefined {
  return (
    cookiesOf(header)
      .filter((pair) => !COOKIE.test(pair))
      .join('; ') || undefined
  );
}

/** Tells whether a workload sets a cookie of a control plane at the same name, with which it could sign a visitor in as somebody else. */
export function setsControlPlaneCookie(setCookie: string): boolean {
  return /^\s*__Host-gpurent/i.test(setCookie);
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
