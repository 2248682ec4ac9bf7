import type { FastifyInstance, onSendHookHandler } from 'fastify';

/** Since when a route or a field is deprecated, when it ends, and what to use instead; see docs/api-stability.md. */
export interface Deprecation {
  /** A day in UTC, such as `2027-01-31`. */
  since: string;
  /** The day on which it can be removed, at least 24 months later. */
  sunset: string;
  /** Ends a sentence that begins with "Use". */
  instead: string;
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Set if clients should no longer call the route. */
    deprecated?: Deprecation;
  }
}

/**
 * Sends `Deprecation` (RFC 9745) and `Sunset` (RFC 8594) with every answer of a deprecated route, errors included. Only routes that are
 * registered after this call.
 */
export function announceDeprecations(app: FastifyInstance): void {
  app.addHook('onRoute', (route) => {
    const { deprecated } = route.config ?? {};
    if (!deprecated) return;
    const headers = {
      Deprecation: `@${Date.parse(deprecated.since) / 1_000}`,
      Sunset: new Date(deprecated.sunset).toUTCString(),
    };
    const announce: onSendHookHandler = (_request, reply, payload, done) => {
      void reply.headers(headers);
      done(null, payload);
    };
    route.onSend = [announce, ...[route.onSend ?? []].flat()];
  });
}

/** Returns what the OpenAPI document says of something deprecated, with the description that it has otherwise. */
export function describeDeprecation({ since, sunset, instead }: Deprecation, description?: string) {
  const notice = `Deprecated since ${since}, and can be removed on ${sunset}. Use ${instead}.`;
  return {
    description: [description, notice].filter(Boolean).join(' '),
    deprecated: true,
    'x-deprecated-since': since,
    'x-sunset': sunset,
  };
}
