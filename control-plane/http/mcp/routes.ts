import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { Refusal } from '../../domain/refusal.js';
import { ERRORS, type ErrorCode } from '../errors/error-codes.js';
import { describeError, sendError } from '../errors/errors.js';
import { callerOf, READ_BY_POST } from '../access/policy.js';
import type { Routes } from '../routes/routes.js';
import { checkOrigin } from './check-origin.js';
import type { McpEndpoint } from './endpoint.js';

const PATH = '/mcp';
const BODY_LIMIT_BYTES = 64 * 1024;
/** What is wrong with a message that is not handed to the library, by JSON-RPC: the text, or what it says. */
const JSON_RPC_ERRORS: Partial<Record<ErrorCode, number>> = {
  MALFORMED_JSON: -32_700,
  PAYLOAD_TOO_LARGE: -32_600,
  UNSUPPORTED_MEDIA_TYPE: -32_600,
  VALIDATION_FAILED: -32_600,
};

/**
 * The routes for AI agents: the Model Context Protocol over Streamable HTTP, for API keys. What a tool does goes through the API, with
 * its rights: the policy here only lets a key in. They are not part of the API. Its library is loaded at the first request.
 */
export const mcpRoutes: Routes = (app, platform) => {
  let loaded: Promise<McpEndpoint> | undefined;
  const endpoint = (): Promise<McpEndpoint> =>
    (loaded ??= import('./endpoint.js').then((module) => new module.McpEndpoint(app as never, platform)));

  app.addHook('onRequest', async (request, reply) => {
    void reply.header('Cache-Control', 'no-store').header('X-Content-Type-Options', 'nosniff');
    checkOrigin(platform, request);
    keyOf(request);
  });
  app.addHook('preClose', async () => (await loaded)?.close());
  app.setErrorHandler<FastifyError>(answerFault);

  const response = { '2xx': Type.Any() };
  // One message: a batch, which the protocol has given up, could hold any number of calls.
  const body = Type.Object({ jsonrpc: Type.Literal('2.0') }, { additionalProperties: true });
  app.post(
    PATH,
    {
      bodyLimit: BODY_LIMIT_BYTES,
      config: { policy: READ_BY_POST, hasStream: true, readsNothing: true },
      schema: {
        hide: true,
        operationId: 'sendMcpMessage',
        summary: 'Send a message of the Model Context Protocol',
        body,
        response,
      },
    },
    async (request, reply) => (await endpoint()).answer(request, reply, keyOf(request)) as never,
  );
  app.delete(
    PATH,
    {
      config: { policy: READ_BY_POST, readsNothing: true },
      schema: {
        hide: true,
        operationId: 'endMcpSession',
        summary: 'End a session of the Model Context Protocol',
        response,
      },
    },
    async (request, reply) => {
      (await endpoint()).end(request, keyOf(request));
      return reply.code(204).send();
    },
  );
};

/** Answers what cannot be a message as JSON-RPC does, with the status and the code of the API. */
function answerFault(error: FastifyError, request: FastifyRequest, reply: FastifyReply) {
  const described = describeError(error, request);
  const number = JSON_RPC_ERRORS[described.code];
  if (number === undefined) return sendError(reply, request, described);
  const { message, ...data } = described;
  const fault = { code: number, message, data: { ...data, request_id: request.id } };
  return reply.code(ERRORS[described.code].status).send({ jsonrpc: '2.0', id: null, error: fault });
}

/** Returns the id of the API key of a request. Refuses with TOKEN_INVALID any other credential: a session is a person's. */
function keyOf(request: FastifyRequest): string {
  const caller = callerOf(request);
  if (caller.kind === 'api_key') return caller.keyId;
  throw new Refusal('TOKEN_INVALID', 'this address takes API keys only: send Authorization: Bearer svc_...');
}
