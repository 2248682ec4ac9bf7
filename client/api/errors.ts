import type { components } from './gen/schema.js';

type Schemas = components['schemas'];

/** A code of an error of this release. A control plane of a later release can send others. */
export type ErrorCode = keyof Schemas extends infer Name ? (Name extends `error.${infer Code}` ? Code : never) : never;

/** The body of an error with a code. */
export type ErrorBody<Code extends ErrorCode> = Schemas[`error.${Code}`];

/** The code of what is no error of the API, for example a page of a proxy. */
export const UNEXPECTED_ANSWER = 'UNEXPECTED_ANSWER';

/** What every error has. */
interface AnyBody {
  code: string;
  message: string;
  request_id: string;
  [field: string]: unknown;
}

/** An answer of the API with an error status. `message` is the server's, for people; programs act on the code. */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  readonly code: string;
  /** With this id an operator finds the request in the logs. */
  readonly requestId: string;

  constructor(
    readonly status: number,
    readonly body: AnyBody,
    /** After how many seconds it makes sense to ask again; null: the answer does not say. */
    readonly retryAfterSeconds: number | null = null,
  ) {
    super(body.message);
    this.code = body.code;
    this.requestId = body.request_id;
  }

  /** Tells whether the error has one of these codes, and so what its body is. */
  is<Code extends ErrorCode>(...codes: Code[]): this is ApiError & { code: Code; body: ErrorBody<Code> } {
    return (codes as string[]).includes(this.code);
  }
}

/** The control plane was not reached, or its answer was lost on the way: nobody knows whether it has done what was asked. */
export class UnreachableError extends Error {
  override readonly name = 'UnreachableError';

  constructor(
    readonly url: string,
    cause: unknown,
  ) {
    super(`${url} was not reached: ${reasonOf(cause)}`, { cause });
  }
}

/** Events were deleted before this reader has reached them. Read the state of what you follow, then follow from now on. */
export class EventsExpiredError extends Error {
  override readonly name = 'EventsExpiredError';

  constructor() {
    super(
      'events were deleted before they were read; read the state of the instances, then follow the events from now on',
    );
  }
}

/** Fetch says only "fetch failed"; why is in the innermost cause. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause === undefined ? error.message || error.name : reasonOf(error.cause);
}

/** Returns the error of an answer. What is not an error of the API gets the code UNEXPECTED_ANSWER. */
export async function errorOf(response: Response): Promise<ApiError> {
  const text = await response.text();
  const seconds = Number(response.headers.get('retry-after') ?? NaN);
  return new ApiError(response.status, bodyOf(text) ?? unexpected(response), Number.isFinite(seconds) ? seconds : null);
}

/** Tells whether a body is that of an error of the API, and not of a proxy before it. */
export function isOfApi(text: string): boolean {
  return bodyOf(text) !== undefined;
}

function bodyOf(text: string): AnyBody | undefined {
  try {
    const body = JSON.parse(text) as Partial<AnyBody> | null;
    return typeof body?.code === 'string' && typeof body.message === 'string' ? (body as AnyBody) : undefined;
  } catch {
    return undefined;
  }
}

function unexpected({ status, url, headers }: Response): AnyBody {
  return {
    code: UNEXPECTED_ANSWER,
    message: `${new URL(url).origin} has answered ${status} without an error of the API; check that this is the address of a control plane`,
    request_id: headers.get('x-request-id') ?? '',
  };
}
