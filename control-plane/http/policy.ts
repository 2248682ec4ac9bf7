import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { AccountCaller, Caller, SessionCaller } from '../domain/caller.js';
import { Refusal, type RefusalCode } from '../domain/refusal.js';
import { authenticate, identifyCaller } from '../services/accounts/authenticate.js';
import type { Platform } from '../services/system/platform.js';
import { clientNetwork } from './client.js';
import { checkCookieUse, isByCookie, sessionCookie } from './cookies.js';

/** Who may call a route, and the refusal of an API key if it may not. */
export interface Policy {
  session: 'any' | 'admin' | 'operator';
  apiKey: 'allowed' | 'TOKEN_INVALID' | 'ADMIN_REQUIRED' | 'NOT_FOUND';
  /** Whether a user without an organization may also call it. */
  noOrganization: 'allowed' | 'refused';
}

export const PUBLIC = 'public';
/** Any member, with a session or an API key. */
export const MEMBER: Policy = { session: 'any', apiKey: 'allowed', noOrganization: 'refused' };
/** The signed-in user's own account. */
export const ACCOUNT: Policy = { session: 'any', apiKey: 'TOKEN_INVALID', noOrganization: 'allowed' };
/** A member with a session, not an API key. */
export const MEMBER_SESSION: Policy = { session: 'any', apiKey: 'TOKEN_INVALID', noOrganization: 'refused' };
/** Credentials: sessions only. An API key gets ADMIN_REQUIRED. */
export const CREDENTIALS: Policy = { session: 'any', apiKey: 'ADMIN_REQUIRED', noOrganization: 'refused' };
export const ADMIN: Policy = { session: 'admin', apiKey: 'ADMIN_REQUIRED', noOrganization: 'refused' };
/** Operators. Every other caller gets NOT_FOUND, as for an unknown address. */
export const OPERATOR: Policy = { session: 'operator', apiKey: 'NOT_FOUND', noOrganization: 'allowed' };

declare module 'fastify' {
  interface FastifyContextConfig {
    policy?: Policy | typeof PUBLIC;
    /** The codes with which the route itself refuses, in addition to those of its policy and schema. */
    refusals?: readonly RefusalCode[];
  }
  interface FastifyRequest {
    caller: Caller | AccountCaller | undefined;
  }
}

export function notFound(): Refusal {
  return new Refusal('NOT_FOUND', 'there is nothing at this address');
}

/** Checks the policy of each route before each request. Throws at startup if a route is declared incompletely. */
export function enforcePolicies(app: FastifyInstance, platform: Platform): void {
  app.decorateRequest('caller', undefined);
  app.addHook('onRoute', ({ config, method, schema, url }) => {
    if (!config?.policy) throw new Error(`${String(method)} ${url} declares no policy`);
    // The response schema keeps undeclared columns out of the response.
    if (!schema?.response) throw new Error(`${String(method)} ${url} declares no response`);
    if (!schema.summary) throw new Error(`${String(method)} ${url} does not say what it does`);
    // Generated clients name their function after it.
    if (!schema.operationId) throw new Error(`${String(method)} ${url} names no operation`);
  });
  app.addHook('onRequest', (request, _reply, done) => {
    try {
      admit(platform, request);
      done();
    } catch (error) {
      done(error as Error);
    }
  });
}

function admit(platform: Platform, request: FastifyRequest): void {
  const { policy } = request.routeOptions.config;
  if (policy === undefined || policy === PUBLIC) return noteApiKey(platform, request);
  request.caller = admittedBy(policy, platform, request, authenticate);
}

function admittedBy(
  policy: Policy,
  platform: Platform,
  request: FastifyRequest,
  authenticated: typeof authenticate,
): Caller | AccountCaller {
  return policy.session === 'operator'
    ? operatorOf(platform, request, authenticated)
    : memberOf(platform, request, policy, authenticated);
}

/**
 * Tells whether the policy of a route still admits the caller of a request whose answer goes on, and for the same organization. This is
 * no use of the credential.
 */
export function isStillAdmitted(platform: Platform, request: FastifyRequest): boolean {
  const { policy } = request.routeOptions.config;
  if (policy === undefined || policy === PUBLIC) return true;
  try {
    const caller = admittedBy(policy, platform, request, identifyCaller);
    return policy.session === 'operator' || organizationOf(caller) === organizationOf(request.caller);
  } catch (error) {
    if (error instanceof Refusal) return false;
    throw error;
  }
}

function organizationOf(caller: Caller | AccountCaller | undefined): string | undefined {
  return caller === undefined || caller.kind === 'no_organization' ? undefined : caller.organizationId;
}

/** Returns the codes with which a policy itself can refuse. */
export function refusalsOf(policy: Policy | typeof PUBLIC): RefusalCode[] {
  if (policy === PUBLIC) return ['ORG_MISMATCH'];
  if (policy.session === 'operator') return ['TOKEN_INVALID', 'COOKIE_REFUSED', 'NOT_FOUND', 'ORG_MISMATCH'];
  const forKeys = policy.apiKey === 'allowed' ? [] : [policy.apiKey];
  return [
    'TOKEN_INVALID',
    'COOKIE_REFUSED',
    'ORG_MISMATCH',
    ...forKeys,
    ...(policy.session === 'admin' ? ['ADMIN_REQUIRED' as const] : []),
  ];
}

function memberOf(
  platform: Platform,
  request: FastifyRequest,
  policy: Policy,
  authenticated: typeof authenticate,
): Caller | AccountCaller {
  const caller = identify(platform, request, authenticated);
  if (caller.kind === 'no_organization') {
    if (policy.noOrganization === 'allowed') return caller;
    throw new Refusal('ORG_MISMATCH', 'you belong to no organization; create one or accept an invitation');
  }
  if (caller.kind === 'api_key') {
    if (policy.apiKey !== 'allowed') throw new Refusal(policy.apiKey, refusalsOfKeys[policy.apiKey]);
  } else if (policy.session === 'admin' && caller.role !== 'admin') {
    throw new Refusal('ADMIN_REQUIRED', 'only an admin of the organization can do this');
  }
  return caller;
}

function operatorOf(platform: Platform, request: FastifyRequest, authenticated = authenticate): AccountCaller {
  try {
    const caller = identify(platform, request, authenticated);
    if (caller.kind !== 'api_key' && caller.isOperator) return caller;
  } catch (error) {
    if (!(error instanceof Refusal) || ['TOKEN_INVALID', 'COOKIE_REFUSED'].includes(error.code)) throw error;
    if (hasApiKey(request) && error.code === 'ORG_MISMATCH') throw error;
  }
  throw notFound();
}

/**
 * Refuses an unknown operator address. A caller without a valid credential gets TOKEN_INVALID, as for a known operator address, so
 * that nobody else can find out which ones exist. Everyone else gets NOT_FOUND.
 */
export function refuseUnknownToOperators(platform: Platform, request: FastifyRequest): never {
  operatorOf(platform, request);
  throw notFound();
}

/**
 * Records the use of an API key, also on public routes and unknown addresses. Refuses with ORG_MISMATCH, before any other
 * refusal, if the request names another organization than the key's.
 */
export function noteApiKey(platform: Platform, request: FastifyRequest): void {
  if (!hasApiKey(request) || !request.url.startsWith('/v1/')) return;
  try {
    // The caller is not stored: login attempts are counted for the account that they name.
    identify(platform, request);
  } catch (error) {
    if (!(error instanceof Refusal) || error.code === 'ORG_MISMATCH') throw error;
  }
}

function hasApiKey({ headers }: FastifyRequest): boolean {
  return /^Bearer +svc_/i.test(headers.authorization ?? '');
}

function identify(platform: Platform, request: FastifyRequest, authenticated = authenticate): Caller | AccountCaller {
  if (isByCookie(request)) checkCookieUse(platform, request);
  const organizationId = request.headers['x-org-id'];
  const chosen = typeof organizationId === 'string' ? organizationId.toLowerCase() : undefined;
  return authenticated(platform, tokenOf(request), chosen, clientNetwork(request));
}

/** Returns the token that a request was sent with; undefined: none. The cookie counts only where there is no `Authorization`. */
export function tokenOf(request: Pick<FastifyRequest, 'headers'>): string | undefined {
  const { authorization } = request.headers;
  if (authorization === undefined) return sessionCookie(request);
  return /^Bearer +([\x21-\x7e]+)$/i.exec(authorization)?.[1];
}

const refusalsOfKeys: Record<Exclude<Policy['apiKey'], 'allowed'>, string> & Partial<Record<RefusalCode, string>> = {
  TOKEN_INVALID: 'an API key cannot be used here; sign in',
  ADMIN_REQUIRED: 'an API key cannot do this; sign in',
  NOT_FOUND: 'there is nothing at this address',
};

/** Returns the caller of a route whose policy requires a member. */
export function callerOf(request: FastifyRequest): Caller {
  const { caller } = request;
  if (!caller || caller.kind === 'no_organization') throw new Error('this route has no caller');
  return caller;
}

/** Returns the user of a route about the user's own account. */
export function accountOf(request: FastifyRequest): AccountCaller {
  const { caller } = request;
  if (!caller || caller.kind === 'api_key') throw new Error('this route has no account');
  return caller;
}

/** Returns the caller of a route whose policy requires a session. */
export function sessionOf(request: FastifyRequest): SessionCaller {
  const caller = callerOf(request);
  if (caller.kind !== 'session') throw new Error('this route has no session');
  return caller;
}
