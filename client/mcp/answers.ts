import type { CallToolResult } from '@modelcontextprotocol/server';
import { ApiError, UnreachableError } from '../api/index.js';
import { liftedBy } from './lifted-by.js';
import { NOTICE, shown, untrusted } from './untrusted.js';

/** The most characters of the items of a list. */
const ITEMS_CHARS = 16_000;
const MESSAGE_CHARS = 1_000;
const DETAILS_CHARS = 2_000;

type Data = Record<string, unknown>;

/** Returns the answer of a tool: what happened in a sentence, and the data, also as text for clients that read only that. */
export function answer(summary: string, data: Data): CallToolResult {
  return { content: [{ type: 'text', text: textOf(summary, data) }], structuredContent: data };
}

/** Returns a refusal: nothing was done. `lifted_by` says what makes it possible. */
export function refusal(code: string, message: string, data: Data = {}): CallToolResult {
  const body = { code, message, ...data };
  return {
    content: [{ type: 'text', text: textOf(`${code}: ${message}`, body) }],
    structuredContent: body,
    isError: true,
  };
}

function textOf(summary: string, data: Data): string {
  return `${summary}\n${NOTICE}\n${JSON.stringify(data)}`;
}

/** Returns as many views of items as an answer has room for, and how many are left out. */
export function fitting<Item>(items: readonly Item[], view: (item: Item) => Data): { items: Data[]; left_out: number } {
  const views: Data[] = [];
  let chars = 0;
  for (const item of items) {
    const next = view(item);
    chars += JSON.stringify(next).length;
    if (chars > ITEMS_CHARS) break;
    views.push(next);
  }
  return { items: views, left_out: items.length - views.length };
}

/** Returns what a tool answers to an error of the API. Undefined: the error is a fault of this program. */
export function failure(error: unknown): CallToolResult | undefined {
  if (error instanceof UnreachableError)
    return refusal('UNREACHABLE', shown(error.message, MESSAGE_CHARS), {
      lifted_by: 'Look at what has happened before you try again: nobody knows whether the request was carried out.',
    });
  if (!(error instanceof ApiError)) return undefined;
  return refusalOf(error.body, error.retryAfterSeconds);
}

/** Returns a refusal with the code, the message and the fields of an error of the API. A host can have written the message: why it refuses a start. */
export function refusalOf(
  { code, message, request_id, ...fields }: { code: string; message: string; [field: string]: unknown },
  retryAfterSeconds: number | null = null,
): CallToolResult {
  const details = Object.keys(fields).length === 0 ? {} : { details: untrusted(JSON.stringify(fields), DETAILS_CHARS) };
  return refusal(shown(code), untrusted(message, MESSAGE_CHARS), {
    lifted_by: liftedBy(code),
    ...details,
    ...(typeof request_id === 'string' ? { request_id } : {}),
    ...(retryAfterSeconds === null ? {} : { retry_after_seconds: retryAfterSeconds }),
  });
}
