import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { Refusal, type RefusalCode } from '../domain/refusal.js';

/** The one place where a refusal becomes a status. */
const STATUS: Readonly<Record<RefusalCode, number>> = {
  ADMIN_REQUIRED: 403,
  ALREADY_MEMBER: 409,
  API_KEY_NOT_FOUND: 404,
  CAPACITY_UNAVAILABLE: 409,
  DISK_TOO_LARGE: 422,
  EMAIL_TAKEN: 409,
  HOST_UNREACHABLE: 409,
  INSTANCE_LIMIT_REACHED: 409,
  INSTANCE_NOT_FOUND: 404,
  INSUFFICIENT_BALANCE: 402,
  INVALID_CREDENTIALS: 401,
  INVALID_STATE: 409,
  IDEMPOTENCY_KEY_REUSED: 409,
  INVITE_NOT_FOUND: 404,
  LAST_ADMIN: 409,
  MACHINE_DISK_EXHAUSTED: 409,
  MACHINE_IN_MAINTENANCE: 409,
  MACHINE_NOT_FOUND: 404,
  MEMBER_NOT_FOUND: 404,
  NOT_FOUND: 404,
  OFFER_NOT_FOUND: 404,
  OFFER_NOT_PINNABLE: 409,
  OFFER_NOT_VM_CAPABLE: 422,
  OFFER_UNAVAILABLE: 409,
  ORG_MISMATCH: 403,
  ORGANIZATION_NOT_FOUND: 404,
  PAYMENTS_FROZEN: 402,
  SSH_KEY_EXISTS: 409,
  SSH_KEY_NOT_FOUND: 404,
  START_REFUSED: 409,
  START_UNAVAILABLE: 503,
  TEMPLATE_ARCH_UNSUPPORTED: 422,
  TEMPLATE_COMING_SOON: 422,
  TEMPLATE_CUDA_TOO_NEW: 422,
  TEMPLATE_NOT_FOUND: 404,
  TEMPLATE_REQUIRES_OWNER: 422,
  TOKEN_INVALID: 401,
  UNAVAILABLE: 503,
  VALIDATION_FAILED: 422,
};

/** What the HTTP layer itself turns down, by the framework's own error code. */
const HTTP_REFUSALS: Readonly<Record<string, { status: number; code: string; message: string }>> = {
  FST_ERR_CTP_INVALID_MEDIA_TYPE: {
    status: 415,
    code: 'UNSUPPORTED_MEDIA_TYPE',
    message: 'send JSON: Content-Type: application/json',
  },
  FST_ERR_CTP_BODY_TOO_LARGE: { status: 413, code: 'PAYLOAD_TOO_LARGE', message: 'the body is too large' },
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: {
    status: 400,
    code: 'MALFORMED_JSON',
    message: 'the body is not as long as Content-Length says',
  },
  MALFORMED_JSON: { status: 400, code: 'MALFORMED_JSON', message: 'the body is not valid JSON' },
};

export interface ErrorBody {
  code: string;
  message: string;
  request_id: string;
}

export function handleErrors(app: FastifyInstance): void {
  app.setErrorHandler<FastifyError>((error, request, reply) => {
    if (error instanceof Refusal) return sendRefusal(error, request, reply);
    if (error.validation) return send(reply, request, 422, describeValidation(error));
    const refusal = HTTP_REFUSALS[error.code];
    if (refusal) return send(reply, request, refusal.status, { code: refusal.code, message: refusal.message });
    request.log.error({ err: error }, 'request failed');
    return send(reply, request, 500, {
      code: 'INTERNAL',
      message: 'something went wrong; give the request id when you report it',
    });
  });
}

/** Answers with a refusal, from wherever one can be had. */
export function sendRefusal(refusal: Refusal, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const { code, message, extra } = refusal;
  return send(reply, request, STATUS[code], { code, message, ...extra });
}

function send(
  reply: FastifyReply,
  request: FastifyRequest,
  status: number,
  body: Omit<ErrorBody, 'request_id'>,
): FastifyReply {
  return reply
    .code(status)
    .header('X-Request-Id', request.id)
    .send({ ...body, request_id: request.id });
}

function describeValidation({ validation = [] }: FastifyError) {
  const details = validation.map(({ instancePath, params, message, keyword }) => {
    const unknown = keyword === 'additionalProperties' ? String(params['additionalProperty']) : undefined;
    const missing = keyword === 'required' ? String(params['missingProperty']) : undefined;
    const path = [instancePath.slice(1).replaceAll('/', '.'), unknown ?? missing].filter(Boolean).join('.');
    if (unknown !== undefined) return { path, message: 'this field is unknown' };
    if (missing !== undefined) return { path, message: 'this field is required' };
    return { path, message: message ?? 'is not valid' };
  });
  const first = details[0];
  return {
    code: 'VALIDATION_FAILED',
    message: first ? `${first.path || 'the body'}: ${first.message}` : 'the request is not valid',
    details,
  };
}
