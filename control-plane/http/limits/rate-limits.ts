import { MINUTE_MS } from '../../../shared/time.js';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { RateLimits } from '../../config.js';
import { Refusal } from '../../domain/refusal.js';
import { isKnownNetwork } from '../../services/identity/sessions/sign-in-networks.js';
import type { App } from '../../services/parts/parts.js';
import { clientNetwork } from '../access/client.js';
import { WindowCounter } from './window-counter.js';

const QUARTER_HOUR_MS = 15 * MINUTE_MS;

declare module 'fastify' {
  interface FastifyContextConfig {
    /**
     * Set if the route checks a password or creates an account: attempts are limited per network and per account that the body
     * names, with 'per address' only per network.
     */
    guessable?: true | 'per address';
  }
}

/** The limit for attempts at one account from all networks together, as a multiple of the limit for one network. */
const EVERYWHERE = 20;

/**
 * Limits requests per network and per credential, and login attempts per network and per account. Refuses with RATE_LIMITED and
 * the seconds to wait. An attacker uses up only the attempts of the attacking network; if many networks attack one account, its user can
 * still sign in from networks of earlier sign-ins, and from one where the user has set a new password by a link. The counts are kept in
 * memory and bounded.
 */
export function limitRates(app: FastifyInstance, limits: RateLimits, platform: App): void {
  const counter = (most: number, windowMs: number) => new WindowCounter(platform.clock, windowMs, most);
  const perAddress = counter(limits.perAddress, MINUTE_MS);
  const perCredential = counter(limits.perCredential, MINUTE_MS);
  const attemptsPerAddress = counter(limits.attemptsPerAddress, QUARTER_HOUR_MS);
  const attemptsAtAccount = counter(limits.attemptsPerAccount, QUARTER_HOUR_MS);
  const attemptsEverywhere = counter(EVERYWHERE * limits.attemptsPerAccount, QUARTER_HOUR_MS);

  app.addHook('onRequest', (request, _reply, done) => {
    done(refusalOf(perAddress.count(clientNetwork(request)), 'from this address'));
  });
  app.addHook('preParsing', (request, _reply, _payload, done) => {
    const { caller } = request;
    done(caller && refusalOf(perCredential.count(credentialOf({ caller })), 'with this credential'));
  });
  const countAttempt = (request: FastifyRequest): Refusal | undefined => {
    const fromAddress = refusalOf(attemptsPerAddress.count(clientNetwork(request)), 'at passwords from this address');
    if (fromAddress || request.routeOptions.config.guessable !== true) return fromAddress;
    const what = 'at the password of this account';
    const fromNetwork = refusalOf(attemptsAtAccount.count(accountAndNetwork(request)), what);
    if (fromNetwork || isKnown(platform, request)) return fromNetwork;
    return refusalOf(attemptsEverywhere.count(accountNamed(request)), what);
  };
  app.addHook('onRoute', (route) => {
    if (!route.config?.guessable) return;
    route.preHandler = [...[route.preHandler ?? []].flat(), (request, _reply, done) => done(countAttempt(request))];
  });
}

function refusalOf(seconds: number, what: string): Refusal | undefined {
  if (seconds === 0) return undefined;
  return new Refusal('RATE_LIMITED', `too many attempts ${what}; try again in ${seconds} s`, {
    retry_after_seconds: seconds,
  });
}

function accountAndNetwork(request: FastifyRequest): string {
  return `${accountNamed(request)} ${clientNetwork(request)}`;
}

function isKnown(platform: App, request: FastifyRequest): boolean {
  return request.caller !== undefined || isKnownNetwork(platform, accountNamed(request), clientNetwork(request));
}

/** Returns what limits are counted for: the API key, or the user of the session. */
export function credentialOf({ caller }: Pick<FastifyRequest, 'caller'>): string {
  return caller?.kind === 'api_key' ? caller.keyId : (caller?.userId ?? '');
}

/** Returns the account that a request is about. For a signed-in caller it is a key of its own, so that attackers cannot lock it out. */
function accountNamed({ caller, body }: FastifyRequest): string {
  if (caller) return credentialOf({ caller });
  const email = (body as { email?: unknown } | undefined)?.email;
  return typeof email === 'string' ? email.toLowerCase() : '';
}
