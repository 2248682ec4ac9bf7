import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { Refusal } from '../domain/refusal.js';
import type { Platform } from '../services/system/platform.js';
import { sendError, sendRefusal } from './errors.js';
import { noteApiKey, notFound, refuseUnknownToOperators } from './policy.js';

/** Answers 404 for an unknown address, and 405 for a known address with another method. */
export function answerUnknownRoutes(app: FastifyInstance, platform: Platform): void {
  const methods = new Map<string, { pattern: RegExp; allowed: Set<string> }>();
  app.addHook('onRoute', ({ url, method }) => {
    const known = methods.get(url) ?? { pattern: patternOf(url), allowed: new Set() };
    for (const name of [method].flat()) known.allowed.add(name);
    methods.set(url, known);
  });
  app.setNotFoundHandler((request, reply) => {
    const path = request.url.split('?')[0] ?? '';
    if (/^\/v1\/operator(\/|$)/.test(path)) refuseUnknownToOperators(platform, request);
    const known = [...methods.values()].find(({ pattern }) => pattern.test(path));
    if (!known) throw notFound();
    const allowed = [...known.allowed].join(', ');
    void reply.header('Allow', allowed);
    return sendError(reply, request, { code: 'METHOD_NOT_ALLOWED', message: `this address accepts only ${allowed}` });
  });
}

/** Answers a request whose address the router cannot parse, for which Fastify runs no hooks. */
export function answerUnreadable(platform: Platform) {
  return (_error: Error, request: FastifyRequest, reply: FastifyReply): void => {
    void sendRefusal(refusalOf(platform, request), request, reply);
  };
}

function refusalOf(platform: Platform, request: FastifyRequest): Refusal {
  try {
    noteApiKey(platform, request);
    return notFound();
  } catch (error) {
    return error instanceof Refusal ? error : notFound();
  }
}

function patternOf(url: string): RegExp {
  return new RegExp(`^${url.replace(/:[a-z_]+/g, '[^/]+').replaceAll('*', '.*')}$`);
}
