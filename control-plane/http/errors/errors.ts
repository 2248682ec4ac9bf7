import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { ConnectionError, FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Ids } from '../../../shared/ids.js';
import { Refusal } from '../../domain/refusal.js';
import { ERRORS, type ErrorCode } from './error-codes.js';
import { MOST_DEPTH, MOST_VALUES } from '../schema/read-bodies.js';
import { detailOf, refuseFields } from '../schema/validation.js';

/** The errors of reading a request, by the code that Fastify or read-bodies.ts gives them. */
const FRAMEWORK_ERRORS: Readonly<Record<string, { code: ErrorCode; message: string }>> = {
  FST_ERR_CTP_INVALID_MEDIA_TYPE: {
    code: 'UNSUPPORTED_MEDIA_TYPE',
    message: 'send JSON: Content-Type: application/json',
  },
  FST_ERR_CTP_BODY_TOO_LARGE: { code: 'PAYLOAD_TOO_LARGE', message: 'the body is too large' },
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: {
    code: 'MALFORMED_JSON',
    message: 'the length of the body differs from Content-Length',
  },
  MALFORMED_JSON: { code: 'MALFORMED_JSON', message: 'the body is not valid JSON' },
  NOT_UTF8: { code: 'MALFORMED_JSON', message: 'the body is not valid UTF-8' },
  HALF_CHARACTER: {
    code: 'MALFORMED_JSON',
    message: 'the body has a \\u escape that is half of a character: send both halves of the surrogate pair',
  },
  TOO_DEEP: { code: 'MALFORMED_JSON', message: `the body is nested too deeply: at most ${MOST_DEPTH} levels` },
  TOO_MANY_VALUES: { code: 'MALFORMED_JSON', message: `the body has too many values: at most ${MOST_VALUES}` },
  FORM_NOT_UTF8: { code: 'MALFORMED_REQUEST', message: 'the form is not valid UTF-8; open the page and try again' },
  ENCODED_BODY: { code: 'UNSUPPORTED_MEDIA_TYPE', message: 'send the body without Content-Encoding' },
};

/** Does not say why the database cannot be written, because anybody can see it; the log has the reason. */
const unavailable = new Refusal(
  'UNAVAILABLE',
  'the database cannot be written now; requests that only read still work',
);

const FAREWELL_MS = 2_000;
const RETRY_AFTER_S = 5;

/** The errors that Node's HTTP parser raises, by its own code. */
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
  app.setErrorHandler<FastifyError>((error, request, reply) =>
    sendError(reply, request, describeError(error, request)),
  );
}

type ErrorDescription = Omit<ErrorBody, 'request_id'>;

/** Returns what to answer to an error, without the id of the request. Logs errors that are faults of this server. */
export function describeError(error: FastifyError, request: FastifyRequest): ErrorDescription {
  if (error instanceof Refusal) return describeRefusal(error);
  if (error.validation) return describeRefusal(refuseFields(error.validation.map(detailOf)));
  if (error.code === 'STORE_UNAVAILABLE') {
    request.log.error({ err: error }, error.message);
    return describeRefusal(unavailable);
  }
  const known = FRAMEWORK_ERRORS[error.code];
  if (known) return known;
  request.log.error({ err: error }, 'request failed');
  return {
    code: 'INTERNAL',
    message: 'an internal error occurred; report it to the operator with the request_id',
  };
}

function describeRefusal({ code, message, extra }: Refusal): ErrorDescription {
  return { code, message, ...extra };
}

export function sendRefusal(refusal: Refusal, request: FastifyRequest, reply: FastifyReply) {
  return sendError(reply, request, describeRefusal(refusal));
}

/** Sets the headers that belong to an error. */
export function setErrorHeaders(reply: FastifyReply, body: ErrorDescription): void {
  const { status } = ERRORS[body.code];
  if (status === 401) void reply.header('WWW-Authenticate', 'Bearer');
  if (status === 503) void reply.header('Retry-After', RETRY_AFTER_S);
  if ('retry_after_seconds' in body) void reply.header('Retry-After', body.retry_after_seconds);
}

/** Sends an error with its status from {@link ERRORS} and the headers that belong to it. */
export function sendError(reply: FastifyReply, request: FastifyRequest, body: ErrorDescription) {
  setErrorHeaders(reply, body);
  return reply
    .code(ERRORS[body.code].status)
    .header('X-Request-Id', request.id)
    .send({ ...body, request_id: request.id });
}

/** Makes an answer UNAVAILABLE, because what it tells of could not be committed. Returns its body. */
export function unavailableBody(request: FastifyRequest, reply: FastifyReply): string {
  const { code, message } = unavailable;
  void reply.code(ERRORS[code].status).type('application/json; charset=utf-8').header('Retry-After', RETRY_AFTER_S);
  return JSON.stringify({ code, message, request_id: request.id });
}

/** Returns a handler that answers requests which Node cannot parse, with the usual error body if the socket still takes one. */
export function answerClientErrors(ids: Ids) {
  return (error: ConnectionError, socket: Socket): void => {
    if (error.code === 'ECONNRESET' || socket.destroyed) return;
    // An error of TLS or of the network. A socket whose TLS handshake has not ended would never send an answer.
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
    // A client that does not read the answer must not keep the socket open.
    socket.setTimeout(FAREWELL_MS, () => socket.destroy());
    socket.destroySoon();
  };
}
