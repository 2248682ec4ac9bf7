import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { ConnectionError, FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Ids } from '../../shared/ids.js';
import { Refusal } from '../domain/refusal.js';
import { ERRORS, type ErrorCode } from './error-codes.js';
import { detailOf, refuseFields } from './validation.js';

/** What the framework itself turns down, by its own error code. */
const FRAMEWORK_ERRORS: Readonly<Record<string, { code: ErrorCode; message: string }>> = {
  FST_ERR_CTP_INVALID_MEDIA_TYPE: {
    code: 'UNSUPPORTED_MEDIA_TYPE',
    message: 'send JSON: Content-Type: application/json',
  },
  FST_ERR_CTP_BODY_TOO_LARGE: { code: 'PAYLOAD_TOO_LARGE', message: 'the body is too large' },
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: {
    code: 'MALFORMED_JSON',
    message: 'the body is not as long as Content-Length says',
  },
  MALFORMED_JSON: { code: 'MALFORMED_JSON', message: 'the body is not valid JSON' },
};

/** Who asks may be anybody; the operator reads the log. */
const unavailable = new Refusal('UNAVAILABLE', 'the database cannot be written now; what is only read is answered');

const FAREWELL_MS = 2_000;
const RETRY_AFTER_S = 5;

/** What Node's parser turns down, by its own error code. */
const CLIENT_ERRORS: Readonly<Record<string, ErrorCode>> = {
  ERR_HTTP_REQUEST_TIMEOUT: 'REQUEST_TIMEOUT',
  HPE_HEADER_OVERFLOW: 'HEADERS_TOO_LARGE',
};

export interface ErrorBody {
  code: ErrorCode;
  message: string;
  request_id: string;
}

export function handleErrors(app: FastifyInstance): void {
  app.setErrorHandler<FastifyError>((error, request, reply) => {
    if (error instanceof Refusal) return sendRefusal(error, request, reply);
    if (error.validation) return sendRefusal(refuseFields(error.validation.map(detailOf)), request, reply);
    if (error.code === 'STORE_UNAVAILABLE') {
      request.log.error({ err: error }, error.message);
      return sendRefusal(unavailable, request, reply);
    }
    const known = FRAMEWORK_ERRORS[error.code];
    if (known) return sendError(reply, request, known);
    request.log.error({ err: error }, 'request failed');
    return sendError(reply, request, {
      code: 'INTERNAL',
      message: 'something went wrong; give the request id when you report it',
    });
  });
}

/** Answers with a refusal, from wherever one can be had. */
export function sendRefusal({ code, message, extra }: Refusal, request: FastifyRequest, reply: FastifyReply) {
  if (code === 'RATE_LIMITED') void reply.header('Retry-After', extra['retry_after_seconds']);
  return sendError(reply, request, { code, message, ...extra });
}

/** Answers with an error of the table, with its status. */
export function sendError(reply: FastifyReply, request: FastifyRequest, body: Omit<ErrorBody, 'request_id'>) {
  const { status } = ERRORS[body.code];
  if (status === 401) void reply.header('WWW-Authenticate', 'Bearer');
  if (status === 503) void reply.header('Retry-After', RETRY_AFTER_S);
  return reply
    .code(status)
    .header('X-Request-Id', request.id)
    .send({ ...body, request_id: request.id });
}

/** What could not even be read as a request: answered in the same words, as far as the socket allows. */
export function answerClientErrors(ids: Ids) {
  return (error: ConnectionError, socket: Socket): void => {
    if (error.code === 'ECONNRESET' || socket.destroyed) return;
    // An error of TLS or of the network: before its handshake has ended a socket would wait for ever to pass an answer on.
    if (!/^(HPE|ERR_HTTP)_/.test(error.code)) return void socket.destroy();
    const code = CLIENT_ERRORS[error.code] ?? 'MALFORMED_REQUEST';
    const { status, meaning } = ERRORS[code];
    const requestId = ids.uuid();
    const body = JSON.stringify({ code, message: meaning, request_id: requestId });
    const head = [
      `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
      'Content-Type: application/json',
      `Content-Length: ${Buffer.byteLength(body)}`,
      `X-Request-Id: ${requestId}`,
      'Connection: close',
    ];
    if (socket.writable) socket.write(`${head.join('\r\n')}\r\n\r\n${body}`);
    // Whoever does not read the answer is not waited for.
    socket.setTimeout(FAREWELL_MS, () => socket.destroy());
    socket.destroySoon();
  };
}
