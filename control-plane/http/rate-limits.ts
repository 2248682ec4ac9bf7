import { MINUTE_MS } from '../../shared/time.js';
import rateLimit from '@fastify/rate-limit';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { RateLimits } from '../config.js';
import { networkOf } from '../domain/network.js';
import { Refusal } from '../domain/refusal.js';
import { hasSessionFrom } from '../services/accounts/sessions.js';
import type { Platform } from '../services/system/platform.js';

type Limiter = ReturnType<FastifyInstance['createRateLimit']>;

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
 * the seconds to wait. An attacker uses up only the attempts of the attacking network; if many networks attack one account,
 * networks with a session of that account can still log in. The counts are kept in memory and bounded.
 */
export async function limitRates(app: FastifyInstance, limits: RateLimits, platform: Platform): Promise<void> {
  await app.register(rateLimit, { global: false });
  const limiter = (max: number, timeWindow: number, keyGenerator: (request: FastifyRequest) => string): Limiter =>
    app.createRateLimit({ max, timeWindow, keyGenerator });

  const perAddress = limiter(limits.perAddress, MINUTE_MS, addressOf);
  const perCredential = limiter(limits.perCredential, MINUTE_MS, credentialOf);
  const attemptsPerAddress = limiter(limits.attemptsPerAddress, QUARTER_HOUR_MS, addressOf);
  const attemptsAtAccount = limiter(limits.attemptsPerAccount, QUARTER_HOUR_MS, accountAndNetwork);
  const attemptsEverywhere = limiter(EVERYWHERE * limits.attemptsPerAccount, QUARTER_HOUR_MS, accountNamed);

  app.addHook('onRequest', (request) => count(perAddress, request, 'from this address'));
  app.addHook('preParsing', async (request) => {
    if (request.caller) await count(perCredential, request, 'with this credential');
  });
  app.addHook('preHandler', async (request) => {
    if (!request.routeOptions.config.guessable) return;
    await count(attemptsPerAddress, request, 'at passwords from this address');
    if (request.routeOptions.config.guessable !== true) return;
    await count(attemptsAtAccount, request, 'at the password of this account');
    if (!isKnown(platform, request)) await count(attemptsEverywhere, request, 'at the password of this account');
  });
}

async function count(limiter: Limiter, request: FastifyRequest, what: string): Promise<void> {
  const answer = await limiter(request);
  if (answer.isAllowed || !answer.isExceeded) return;
  const seconds = Math.max(answer.ttlInSeconds, 1);
  throw new Refusal('RATE_LIMITED', `too many attempts ${what}; try again in ${seconds} s`, {
    retry_after_seconds: seconds,
  });
}

function addressOf(request: FastifyRequest): string {
  return networkOf(request.ip);
}

function accountAndNetwork(request: FastifyRequest): string {
  return `${accountNamed(request)} ${addressOf(request)}`;
}

function isKnown(platform: Platform, request: FastifyRequest): boolean {
  return request.caller !== undefined || hasSessionFrom(platform, accountNamed(request), addressOf(request));
}

function credentialOf({ caller }: Pick<FastifyRequest, 'caller'>): string {
  return caller?.kind === 'api_key' ? caller.keyId : (caller?.userId ?? '');
}

/** Returns the account that a request is about. For a signed-in caller it is a key of its own, so that attackers cannot lock it out. */
function accountNamed({ caller, body }: FastifyRequest): string {
  if (caller) return credentialOf({ caller });
  const email = (body as { email?: unknown } | undefined)?.email;
  return typeof email === 'string' ? email.toLowerCase() : '';
}
