import type { FastifyInstance } from 'fastify';
import { PUBLIC } from '../access/policy.js';
import { text } from '../schema/schemas.js';
import { SCRIPT } from './layout.js';
import { PASSKEY_SCRIPT } from './passkey-script.js';

/** Serves the script of the pages. */
export function addScript(app: FastifyInstance): void {
  const about = { hide: true, operationId: 'getPasskeyScript', summary: 'The script of the pages' };
  app.get(
    SCRIPT,
    { config: { policy: PUBLIC }, schema: { ...about, response: { 200: text('The script') } } },
    (_request, reply) => {
      // A release can change it, and browsers ask rarely.
      void reply.type('text/javascript; charset=utf-8').header('Cache-Control', 'no-cache');
      return PASSKEY_SCRIPT;
    },
  );
}
