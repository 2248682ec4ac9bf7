import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { Refusal } from '../../domain/refusal.js';
import type { App } from '../../services/parts/parts.js';
import { sendError, sendRefusal } from '../errors/errors.js';
import { noteApiKey, notFound, refuseUnknownToOperators } from '../access/policy.js';

/** Answers a request for a page that there is not, to a person. */
export type PageNotFound = (request: FastifyRequest, reply: FastifyReply) => FastifyReply;

/**
 * Answers 404 for an unknown address, and 405 for a known address with another method. Browsers that ask for a page get the one of
 * `showPage`, except beside addresses of the API and of other routes.
 */
export function answerUnknownRoutes(app: FastifyInstance, platform: App, showPage?: PageNotFound): void {
  const methods = new Map<string, { pattern: RegExp; allowed: Set<string> }>();
  const firstWords = new Set<string>();
  app.addHook('onRoute', ({ url, method }) => {
    firstWords.add(firstWordOf(url));
    const known = methods.get(url) ?? { pattern: patternOf(url), allowed: new Set() };
    for (const name of [method].flat()) known.allowed.add(name);
    methods.set(url, known);
  });
  app.setNotFoundHandler((request, reply) => {
    const path = request.url.split('?')[0] ?? '';
    if (/^\/v1\/operator(\/|$)/.test(path)) refuseUnknownToOperators(platform, request);
    const known = [...methods.values()].find(({ pattern }) => pattern.test(path));
    if (!known && showPage && asksForPage(request) && !firstWords.has(firstWordOf(path)))
      return showPage(request, reply);
    if (!known) throw notFound();
    const allowed = [...known.allowed].join(', ');
    void reply.header('Allow', allowed);
    return sendError(reply, request, { code: 'METHOD_NOT_ALLOWED', message: `this address accepts only ${allowed}` });
  });
}

/** Answers a request whose address the router cannot parse, for which Fastify runs no hooks. */
export function answerUnreadable(platform: App) {
  return (_error: Error, request: FastifyRequest, reply: FastifyReply): void => {
    void sendRefusal(refusalOf(platform, request), request, reply);
  };
}

function refusalOf(platform: App, request: FastifyRequest): Refusal {
  try {
    noteApiKey(platform, request);
    return notFound();
  } catch (error) {
    return error instanceof Refusal ? error : notFound();
  }
}

/** Tells whether a browser asks for a page, and not a program for whatever there is. */
function asksForPage({ method, headers: { accept } }: FastifyRequest): boolean {
  if (method !== 'GET' && method !== 'HEAD') return false;
  return (accept ?? '').split(',').some((type) => /^\s*text\/html\s*(?:;(?!\s*q=0(?:\.0*)?\s*$).*)?$/i.test(type));
}

function firstWordOf(path: string): string {
  return path.split('/')[1] ?? '';
}

function patternOf(url: string): RegExp {
  return new RegExp(`^${url.replace(/:[a-z_]+/g, '[^/]+').replaceAll('*', '.*')}$`);
}
