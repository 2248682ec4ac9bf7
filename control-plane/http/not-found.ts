import type { FastifyInstance } from 'fastify';
import { sendError } from './errors.js';
import { notFound } from './policy.js';

/** 404 for an address that is none, 405 for one that is another method's. */
export function answerUnknownRoutes(app: FastifyInstance): void {
  const methods = new Map<string, { pattern: RegExp; allowed: Set<string> }>();
  app.addHook('onRoute', ({ url, method }) => {
    const known = methods.get(url) ?? { pattern: patternOf(url), allowed: new Set() };
    for (const name of [method].flat()) known.allowed.add(name);
    methods.set(url, known);
  });
  app.setNotFoundHandler((request, reply) => {
    const path = request.url.split('?')[0] ?? '';
    const known = path.startsWith('/v1/operator')
      ? undefined
      : [...methods.values()].find(({ pattern }) => pattern.test(path));
    if (!known) throw notFound();
    const allowed = [...known.allowed].join(', ');
    void reply.header('Allow', allowed);
    return sendError(reply, request, { code: 'METHOD_NOT_ALLOWED', message: `this address takes ${allowed}` });
  });
}

function patternOf(url: string): RegExp {
  return new RegExp(`^${url.replace(/:[a-z_]+/g, '[^/]+').replaceAll('*', '.*')}$`);
}
