import { createHash, createHmac, timingSafeEqual } from 'node:crypto';

/** The check at one guarded port. */
export interface PortGate {
  hostPort: number;
  /** SHA-256 of the access token, in hex. */
  tokenHash: string;
}

/** The parts of a visitor's request that the check reads. */
export interface ProxyRequest {
  method: string;
  /** Path and query. */
  url: string;
  /** By their names in lower case, as Node has them. */
  headers: {
    host?: string | undefined;
    origin?: string | undefined;
    cookie?: string | undefined;
    authorization?: string | undefined;
    accept?: string | undefined;
    'sec-fetch-site'?: string | string[] | undefined;
    'sec-fetch-mode'?: string | string[] | undefined;
    'sec-fetch-dest'?: string | string[] | undefined;
  };
  address: string;
}

/** The result of the check. `cookie` must be set in the answer, so that the next request needs no token. */
export type Authorization = { admitted: false } | { admitted: true; cookie?: string };

/**
 * The cookies of gates, and those of a control plane at the same name. Browsers ignore spaces before a name, and send a cookie without
 * a name (`=gpurent_1=2`) as if its value were name and value.
 */
const OWN_COOKIE = /^[^a-z0-9_]*(__(Host|Secure)-)*gpurent([_-]|\W*$|\W*[=;])/i;

/**
 * Admits visitors with the access token, as query parameter `token` or as `Authorization: Bearer`. A visitor with the
 * query parameter gets a cookie, which is valid at this port and from this address only, because browsers send the
 * cookies of a host to all of its ports, also to those of other renters. A cookie is not valid in a request from a page
 * of another origin, as far as the browser says from where a request comes: see {@link isSameOrigin}.
 */
export function authorize(gate: PortGate, request: ProxyRequest): Authorization {
  const { url, headers, address } = request;
  if (gate.tokenHash === '') return { admitted: false };
  const cookie = `${cookieName(gate)}=${seal(gate, address)}`;
  const token = new URLSearchParams(url.split('?')[1] ?? '').get('token');
  if (token !== null && fits(gate, token)) return { admitted: true, cookie };
  const bearer = /^(?:Bearer|token) +(\S+)$/i.exec(headers.authorization ?? '')?.[1];
  if (bearer !== undefined && fits(gate, bearer)) return { admitted: true };
  const hasCookie = cookiesOf(headers.cookie).some((pair) => isEqual(pair, cookie));
  return { admitted: hasCookie && isSameOrigin(request) };
}

/**
 * Returns where to send a browser that opens a page with the access token in its address, so that the token leaves the address bar:
 * the same path without the token, with all other parameters as they are. Undefined: nowhere, because the request does not open a page,
 * or its path could lead to another host.
 */
export function locationWithoutToken(gate: PortGate, request: ProxyRequest): string | undefined {
  const { url, headers } = request;
  const [path = '', ...rest] = url.split('?');
  if (request.method !== 'GET' || !/\btext\/html\b/i.test(headers.accept ?? '')) return undefined;
  if (headers['sec-fetch-mode'] !== undefined && !opensDocument(request)) return undefined;
  if (!/^\/(?![/\\])[\x21-\x7e]*$/.test(path)) return undefined;
  const pairs = rest.join('?').split('&');
  const kept = pairs.filter((pair) => !isToken(gate, pair));
  if (kept.length === pairs.length) return undefined;
  return kept.length === 0 ? path : `${path}?${kept.join('&')}`;
}

function isToken(gate: PortGate, pair: string): boolean {
  const token = new URLSearchParams(pair).get('token');
  return token !== null && fits(gate, token);
}

/** Removes the cookies of all gates and of control planes from a cookie header. Returns undefined if nothing is left. */
export function withoutOwnCookies(header: string | undefined): string | undefined {
  return (
    cookiesOf(header)
      .filter((pair) => !isOwnCookie(pair))
      .join('; ') || undefined
  );
}

/**
 * Tells whether a cookie is one of a gate or of a control plane. A workload must not set these: browsers send the cookies of a name to
 * all of its ports, so it could lock visitors out of another port, or sign them in to a control plane as somebody else.
 */
export function isOwnCookie(cookie: string): boolean {
  return OWN_COOKIE.test(cookie);
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

/**
 * Tells whether a request comes from a page of this port, or opens it. Another port of the same host name is another renter, and is
 * `same-site`: its pages can embed this port, and browsers send no `Origin` with a script or an image. Browsers send `Sec-Fetch-Site`
 * only to https and loopback. By plain HTTP, only requests with an `Origin` can be told apart.
 */
function isSameOrigin(request: ProxyRequest): boolean {
  const { host, origin, 'sec-fetch-site': site } = request.headers;
  if (origin !== undefined && !(URL.canParse(origin) && new URL(origin).host === host)) return false;
  return site === undefined || site === 'same-origin' || (request.method === 'GET' && opensDocument(request));
}

function opensDocument({ headers }: ProxyRequest): boolean {
  return headers['sec-fetch-mode'] === 'navigate' && headers['sec-fetch-dest'] === 'document';
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
