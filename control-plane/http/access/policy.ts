import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import {
  ROLES,
  may,
  rolesWith,
  type AccountCaller,
  type Caller,
  type Right,
  type SessionCaller,
} from '../../domain/caller.js';
import { Refusal, type RefusalCode } from '../../domain/refusal.js';
import { authenticate, identifyCaller } from '../../services/identity/sessions/authenticate.js';
import type { App } from '../../services/parts/parts.js';
import { clientAddress } from './client.js';
import { checkCookieUse, isByCookie, sessionCookie } from './cookies.js';

/** Who may call a route, and the refusal of an API key if it may not. */
export interface Policy {
  /** What its caller does in the organization; `own`: it is about the user's own account; `operate`: only operators may call it. */
  right: Right | 'own' | 'operate';
  apiKey: 'allowed' | 'TOKEN_INVALID' | 'ADMIN_REQUIRED' | 'NOT_FOUND';
  /** Whether a user without an organization may also call it. */
  noOrganization: 'allowed' | 'refused';
  /** Set if a request changes nothing although it is no GET, so that callers who only read may send it. */
  changesNothing?: true;
}

export const PUBLIC = 'public';
/** Reads what the organization has. Also viewers, and API keys that are read-only. */
export const READ: Policy = { right: 'read', apiKey: 'allowed', noOrganization: 'refused' };
/** Reads about money, also on which times charges rest. Every role, and API keys that are read-only. */
export const READ_MONEY: Policy = { ...READ, right: 'read_money' };
/** Reads like {@link READ} by a POST, which changes nothing. */
export const READ_BY_POST: Policy = { ...READ, changesNothing: true };
/** Changes what the organization has, with a session or an API key. */
export const MEMBER: Policy = { right: 'change', apiKey: 'allowed', noOrganization: 'refused' };
/** The signed-in user's own account. */
export const ACCOUNT: Policy = { right: 'own', apiKey: 'TOKEN_INVALID', noOrganization: 'allowed' };
/** Changes what the organization has, with a session, not an API key. */
export const MEMBER_SESSION: Policy = { right: 'change', apiKey: 'TOKEN_INVALID', noOrganization: 'refused' };
/** Credentials: sessions only. An API key gets ADMIN_REQUIRED. */
export const CREDENTIALS: Policy = { right: 'change', apiKey: 'ADMIN_REQUIRED', noOrganization: 'refused' };
/** Pays, and sets caps: admins, and members with the role billing. */
export const MONEY: Policy = { right: 'change_money', apiKey: 'ADMIN_REQUIRED', noOrganization: 'refused' };
export const ADMIN: Policy = { right: 'administer', apiKey: 'ADMIN_REQUIRED', noOrganization: 'refused' };
/** Operators. Every other caller gets NOT_FOUND, as for an unknown address. */
export const OPERATOR: Policy = { right: 'operate', apiKey: 'NOT_FOUND', noOrganization: 'allowed' };

declare module 'fastify' {
  interface FastifyContextConfig {
    policy?: Policy | typeof PUBLIC;
    /** The codes with which the route itself refuses, in addition to those of its policy and schema. */
    refusals?: readonly RefusalCode[];
  }
  interface FastifyRequest {
    caller: Caller | AccountCaller | undefined;
    /** Tells whether its caller may still have the rest of a long answer; see {@link isStillAdmitted}. */
    isStillAdmitted(): boolean;
  }
}

export function notFound(): Refusal {
  return new Refusal('NOT_FOUND', 'there is nothing at this address');
}

/**
 * Checks the policy of each route before each request, and again once a body has arrived. Throws at startup if a route is declared
 * incompletely.
 */
export function enforcePolicies(app: FastifyInstance, platform: App): void {
  const checkAgain = (request: FastifyRequest, _reply: FastifyReply, done: (error?: Error) => void) => {
    try {
      admitAgain(platform, request);
      done();
    } catch (error) {
      done(error as Error);
    }
  };
  app.decorateRequest('caller', undefined);
  app.decorateRequest('isStillAdmitted', function () {
    return isStillAdmitted(platform, this);
  });
  app.addHook('onRoute', (route) => {
    const { config, method, schema, url } = route;
    if (!config?.policy) throw new Error(`${String(method)} ${url} declares no policy`);
    // The response schema keeps undeclared columns out of the response.
    if (!schema?.response) throw new Error(`${String(method)} ${url} declares no response`);
    if (!schema.summary) throw new Error(`${String(method)} ${url} does not say what it does`);
    // Generated clients name their function after it.
    if (!schema.operationId) throw new Error(`${String(method)} ${url} names no operation`);
    if (config.policy === PUBLIC) return;
    checkRight(config.policy, String(method), url);
    if (!isRead(String(method))) route.preHandler = [checkAgain, ...[route.preHandler ?? []].flat()];
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

function isRead(method: string): boolean {
  return method === 'GET' || method === 'HEAD';
}

/** Throws if a policy gives a route that can change something to callers who only read, or the other way round. */
function checkRight({ right, changesNothing }: Policy, method: string, url: string): void {
  const isForReaders = right === 'read' || right === 'read_money';
  if (isForReaders && !isRead(method) && !changesNothing)
    throw new Error(`the policy of ${method} ${url} lets callers in who only read: give it MEMBER, or READ_BY_POST`);
  if ((right === 'change' || right === 'change_money') && isRead(method))
    throw new Error(`the policy of ${method} ${url} keeps callers out who only read: give it READ or READ_MONEY`);
}

function admit(platform: App, request: FastifyRequest): void {
  const { policy } = request.routeOptions.config;
  if (policy === undefined || policy === PUBLIC) return noteApiKey(platform, request);
  request.caller = admittedBy(policy, platform, request, authenticate);
}

function admittedBy(
  policy: Policy,
  platform: App,
  request: FastifyRequest,
  authenticated: typeof authenticate,
): Caller | AccountCaller {
  return policy.right === 'operate'
    ? operatorOf(platform, request, authenticated)
    : memberOf(platform, request, { ...policy, right: policy.right }, authenticated);
}

/**
 * Checks the policy again once the body of a request has arrived, which can take half a minute: until then the credential can have
 * ended, or its user can have another role. Refuses with ORG_MISMATCH if the session has come to act for another organization.
 */
function admitAgain(platform: App, request: FastifyRequest): void {
  const { policy } = request.routeOptions.config;
  if (policy === undefined || policy === PUBLIC) return;
  const caller = admittedBy(policy, platform, request, identifyCaller);
  const isOfOrganization = policy.right !== 'operate' && policy.right !== 'own';
  if (isOfOrganization && organizationOf(caller) !== organizationOf(request.caller))
    throw new Refusal('ORG_MISMATCH', 'you have left the organization for which this request was sent');
  request.caller = caller;
}

/**
 * Tells whether the policy of a route still admits the caller of a request whose answer goes on, and for the same organization. This is
 * no use of the credential.
 */
export function isStillAdmitted(platform: App, request: FastifyRequest): boolean {
  const { policy } = request.routeOptions.config;
  if (policy === undefined || policy === PUBLIC) return true;
  try {
    const caller = admittedBy(policy, platform, request, identifyCaller);
    return policy.right === 'operate' || organizationOf(caller) === organizationOf(request.caller);
  } catch (error) {
    if (error instanceof Refusal) return false;
    throw error;
  }
}

/** Refuses with TOKEN_INVALID if the right of the caller has ended while a host was asked: what it has said is not shown any more. */
export function refuseIfEnded(request: FastifyRequest): void {
  if (!request.isStillAdmitted())
    throw new Refusal('TOKEN_INVALID', 'the right to read this has ended during the request');
}

function organizationOf(caller: Caller | AccountCaller | undefined): string | undefined {
  return caller === undefined || caller.kind === 'no_organization' ? undefined : caller.organizationId;
}

/** Returns the codes with which a policy itself can refuse. */
export function refusalsOf(policy: Policy | typeof PUBLIC): RefusalCode[] {
  if (policy === PUBLIC) return ['ORG_MISMATCH'];
  const always: RefusalCode[] = ['TOKEN_INVALID', 'COOKIE_REFUSED', 'API_KEY_ADDRESS', 'ORG_MISMATCH'];
  const { right, apiKey } = policy;
  if (right === 'operate') return [...always, 'NOT_FOUND', 'SECOND_FACTOR_REQUIRED'];
  if (right === 'own') return [...always, ...(apiKey === 'allowed' ? [] : [apiKey])];
  const isForReaders = rolesWith(right).includes('viewer');
  const forKeys: RefusalCode[] = apiKey !== 'allowed' ? [apiKey] : isForReaders ? [] : ['API_KEY_READ_ONLY'];
  const forRoles: RefusalCode[] = rolesWith(right).length === ROLES.length ? [] : [refusalOfRole(right)];
  const forFactors: RefusalCode[] = policy.noOrganization === 'refused' ? ['SECOND_FACTOR_REQUIRED'] : [];
  return [...always, ...forKeys, ...forRoles, ...forFactors];
}

/** Returns the code for sessions whose role lacks a right: that of earlier releases where a member lacks it. */
function refusalOfRole(right: Right): 'ADMIN_REQUIRED' | 'ROLE_NOT_ALLOWED' {
  return rolesWith(right).includes('member') ? 'ROLE_NOT_ALLOWED' : 'ADMIN_REQUIRED';
}

/** The policy of a route for members, or of their own account. */
type MemberPolicy = Policy & { right: Exclude<Policy['right'], 'operate'> };

function memberOf(
  platform: App,
  request: FastifyRequest,
  policy: MemberPolicy,
  authenticated: typeof authenticate,
): Caller | AccountCaller {
  const caller = identify(platform, request, authenticated);
  if (caller.kind === 'no_organization') {
    if (policy.noOrganization === 'allowed') return caller;
    throw new Refusal('ORG_MISMATCH', 'you belong to no organization; create one or accept an invitation');
  }
  if (caller.kind === 'api_key' && policy.apiKey !== 'allowed')
    throw new Refusal(policy.apiKey, refusalsOfKeys[policy.apiKey]);
  if (caller.kind === 'session' && caller.lacksFactor && policy.noOrganization === 'refused')
    throw factorRequired('this organization demands a second factor of its members');
  if (policy.right !== 'own' && !may(caller, policy.right)) throw withoutRight(caller, policy.right);
  return caller;
}

function withoutRight(caller: Caller, right: Right): Refusal {
  if (caller.kind === 'api_key')
    return new Refusal('API_KEY_READ_ONLY', 'this API key can only read: use one that is not read-only, or sign in');
  const roles = rolesWith(right);
  if (refusalOfRole(right) === 'ADMIN_REQUIRED') {
    const who = roles.includes('billing') ? 'an admin or a member with the role billing' : 'an admin';
    return new Refusal('ADMIN_REQUIRED', `only ${who} of the organization can do this`);
  }
  const message = `your role in this organization is ${caller.role}, and this needs ${roles.join(' or ')}; ask an admin`;
  return new Refusal('ROLE_NOT_ALLOWED', message, { role: caller.role, allowed_roles: roles });
}

function factorRequired(who: string): Refusal {
  return new Refusal(
    'SECOND_FACTOR_REQUIRED',
    `${who}: give yours in this session; if you have none, add one first, on the page /account/second-factors`,
  );
}

function operatorOf(platform: App, request: FastifyRequest, authenticated = authenticate): AccountCaller {
  try {
    const caller = identify(platform, request, authenticated);
    if (caller.kind !== 'api_key' && caller.isOperator) {
      if (platform.operatorsNeedFactor && !caller.isWithFactor)
        throw factorRequired('this control plane demands a second factor of its operators');
      return caller;
    }
  } catch (error) {
    if (!(error instanceof Refusal) || SHOWN_TO_ALL.includes(error.code)) throw error;
    if (hasApiKey(request) && error.code === 'ORG_MISMATCH') throw error;
  }
  throw notFound();
}

/**
 * Refuses an unknown operator address. A caller without a valid credential gets TOKEN_INVALID, as for a known operator address, so
 * that nobody else can find out which ones exist. Everyone else gets NOT_FOUND.
 */
export function refuseUnknownToOperators(platform: App, request: FastifyRequest): never {
  operatorOf(platform, request);
  throw notFound();
}

/**
 * Records the use of an API key, also on public routes and unknown addresses. Refuses with ORG_MISMATCH, before any other
 * refusal, if the request names another organization than the key's. A key from an address that it does not allow is as none.
 */
export function noteApiKey(platform: App, request: FastifyRequest): void {
  if (!hasApiKey(request) || !request.url.startsWith('/v1/')) return;
  try {
    // The caller is not stored: login attempts are counted for the account that they name.
    identify(platform, request);
  } catch (error) {
    if (!(error instanceof Refusal) || error.code === 'ORG_MISMATCH') throw error;
  }
}

/** What a caller is told of a credential also where routes for operators are hidden. */
const SHOWN_TO_ALL: readonly RefusalCode[] = [
  'TOKEN_INVALID',
  'COOKIE_REFUSED',
  'API_KEY_ADDRESS',
  'SECOND_FACTOR_REQUIRED',
];

function hasApiKey({ headers }: FastifyRequest): boolean {
  return /^Bearer +svc_/i.test(headers.authorization ?? '');
}

function identify(platform: App, request: FastifyRequest, authenticated = authenticate): Caller | AccountCaller {
  if (isByCookie(request)) checkCookieUse(platform, request);
  const organizationId = request.headers['x-org-id'];
  const chosen = typeof organizationId === 'string' ? organizationId.toLowerCase() : undefined;
  return authenticated(platform, tokenOf(request), chosen, clientAddress(request));
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
