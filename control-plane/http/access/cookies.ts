import type { FastifyReply, FastifyRequest } from 'fastify';
import { browserHost } from '../../domain/browser-host.js';
import { Refusal } from '../../domain/refusal.js';
import { mayChange, mayRead, type Provenance } from '../../domain/identity/same-origin.js';
import { REQUEST_MS } from '../../domain/identity/second-factor.js';
import { leadsToInstances } from '../../services/machines/browser-hosts.js';
import type { App } from '../../services/parts/parts.js';

type Headed = Pick<FastifyRequest, 'headers'>;

/** The cookie with the token of a session. `__Host-`: browsers take it only with Secure and Path=/, and send it to this name alone. */
export const SESSION_COOKIE = '__Host-gpurent';
/** The cookie with the secret of the forms of a visitor who is not signed in. */
export const FORM_COOKIE = '__Host-gpurent-form';
/** The cookie by which a sign-in at a company comes back to the browser that has begun it. */
export const COMPANY_COOKIE = '__Host-gpurent-company';
/** The cookie with the token of a sign-in that waits for its second factor. */
export const FACTOR_COOKIE = '__Host-gpurent-factor';
/** The header that only scripts can send: see {@link Provenance}. */
export const MARK = 'x-same-origin';

const ATTRIBUTES = 'Path=/; Secure; HttpOnly; SameSite=Lax';
/** 400 days, the longest time for which browsers keep a cookie. The session itself ends 30 days after its last use. */
const SESSION_COOKIE_S = 400 * 86_400;
const SESSION_TOKEN = /^ses_[0-9a-f]{64}$/;
/** As long as a sign-in at a company may take, and then the decision to link accounts. */
const COMPANY_COOKIE_S = 1_200;
/** As long as the token works. */
const FACTOR_COOKIE_S = REQUEST_MS / 1_000;
const FACTOR_TOKEN = /^fac_[0-9a-f]{64}$/;
const FORM_SECRET = /^[0-9a-f]{32}$/;

/** Returns the values of the cookies with this name. Only spaces and tabs are cut off a name: servers that cut off more can be deceived. */
function cookiesOf({ headers }: Headed, name: string): string[] {
  const pairs = (headers.cookie ?? '').split(';').map(withoutBlanks);
  return pairs.flatMap((pair) => (pair.startsWith(`${name}=`) ? [pair.slice(name.length + 1)] : []));
}

/** Cuts spaces and tabs off both ends, in one pass: an expression for the last ones would try anew at each of those before. */
function withoutBlanks(text: string): string {
  let [start, end] = [0, text.length];
  while (isBlank(text[start])) start += 1;
  while (end > start && isBlank(text[end - 1])) end -= 1;
  return text.slice(start, end);
}

const isBlank = (char: string | undefined) => char === ' ' || char === '\t';

/** Returns the value of a cookie; undefined if there is none, or more than one: then nobody can tell which is the browser's own. */
function onlyCookie(request: Headed, name: string, pattern: RegExp): string | undefined {
  const [value, another] = cookiesOf(request, name);
  return value !== undefined && another === undefined && pattern.test(value) ? value : undefined;
}

/** Tells whether a request has only a cookie as its credential: a request with `Authorization` is authenticated by that alone. */
export function isByCookie(request: Headed): boolean {
  return request.headers.authorization === undefined && cookiesOf(request, SESSION_COOKIE).length > 0;
}

/** Returns the session token in the cookie. Other credentials, such as API keys, are none in a cookie. */
export function sessionCookie(request: Headed): string | undefined {
  return onlyCookie(request, SESSION_COOKIE, SESSION_TOKEN);
}

/** Returns the secret of the visitor's forms. */
export function formCookie(request: Headed): string | undefined {
  return onlyCookie(request, FORM_COOKIE, FORM_SECRET);
}

/** Returns the secret by which a browser is known that has begun a sign-in at a company. */
export function companyCookie(request: Headed): string | undefined {
  return onlyCookie(request, COMPANY_COOKIE, FORM_SECRET);
}

export function setCompanyCookie(reply: FastifyReply, secret: string): void {
  void reply.header('Set-Cookie', `${COMPANY_COOKIE}=${secret}; Max-Age=${COMPANY_COOKIE_S}; ${ATTRIBUTES}`);
}

export function setSessionCookie(reply: FastifyReply, token: string): void {
  void reply.header('Set-Cookie', `${SESSION_COOKIE}=${token}; Max-Age=${SESSION_COOKIE_S}; ${ATTRIBUTES}`);
}

export function clearSessionCookie(reply: FastifyReply): void {
  void reply.header('Set-Cookie', `${SESSION_COOKIE}=; Max-Age=0; ${ATTRIBUTES}`);
}

/** Sets the secret of the visitor's forms until the browser is closed. */
export function setFormCookie(reply: FastifyReply, secret: string): void {
  void reply.header('Set-Cookie', `${FORM_COOKIE}=${secret}; ${ATTRIBUTES}`);
}

/** Returns the token of a sign-in that waits for its second factor. */
export function factorCookie(request: Headed): string | undefined {
  return onlyCookie(request, FACTOR_COOKIE, FACTOR_TOKEN);
}

export function setFactorCookie(reply: FastifyReply, token: string): void {
  void reply.header('Set-Cookie', `${FACTOR_COOKIE}=${token}; Max-Age=${FACTOR_COOKIE_S}; ${ATTRIBUTES}`);
}

export function clearFactorCookie(reply: FastifyReply): void {
  void reply.header('Set-Cookie', `${FACTOR_COOKIE}=; Max-Age=0; ${ATTRIBUTES}`);
}

/** Refuses with COOKIE_REFUSED a request to the API that a cookie authenticates, unless a page of this control plane has sent it. */
export function checkCookieUse(platform: App, request: FastifyRequest): void {
  refuseAmongInstances(platform, request);
  const isRead = request.method === 'GET' || request.method === 'HEAD';
  const [provenance, own] = [provenanceOf(request), ownOrigin(platform, request)];
  if (isRead ? mayRead(provenance, own) : mayChange(provenance, own)) return;
  const header = isRead ? '' : ', with the header X-Same-Origin: 1';
  throw new Refusal(
    'COOKIE_REFUSED',
    `a cookie is a credential only for pages of ${own}: send the request from such a page${header}; programs send Authorization: Bearer <token>`,
  );
}

export function provenanceOf({ headers }: Headed): Provenance {
  const site = headers['sec-fetch-site'];
  return {
    // Node joins values of a header that is sent twice, and the result is none that is accepted.
    site: Array.isArray(site) ? site.join() : site,
    origin: headers.origin,
    isMarked: headers[MARK] === '1',
  };
}

/** Returns the origin at which browsers reach this control plane: the configured one, or the one that the request names. */
export function ownOrigin({ publicUrl }: App, request: FastifyRequest): string {
  if (publicUrl !== null) return publicUrl;
  const named = `${request.protocol}://${request.host}`;
  return URL.canParse(named) ? new URL(named).origin : named;
}

/**
 * Refuses with COOKIE_REFUSED if instances are reached at the same name as this control plane: browsers show a cookie to every port of a
 * name, so an instance would get it.
 */
export function refuseAmongInstances(platform: App, request: FastifyRequest): void {
  const names = [request.headers.host, request.host, platform.publicUrl?.replace(/^\w+:\/\//, '')];
  const hosts = [...new Set(names.flatMap((name) => (name ? (browserHost(name) ?? []) : [])))];
  if (!leadsToInstances(platform, hosts)) return;
  throw new Refusal(
    'COOKIE_REFUSED',
    `instances are reached at ${hosts.join(' or ')}, too, and a browser would show them your cookie: open this control plane by another name (on the same machine localhost instead of 127.0.0.1); an operator gives it a name of its own with GPURENT_PUBLIC_URL, or removes the machine that claims its name`,
  );
}
