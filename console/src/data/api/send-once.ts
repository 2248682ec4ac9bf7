import { ApiError, UNEXPECTED_ANSWER } from '../../../../client/api/errors.js';
import { newIdempotencyKey } from '../../../../client/api/idempotency-key.js';
import { forgetKey, keepKey, keptKey } from './request-keys.js';

/** Answers that come before the control plane looks at the key: an earlier try of the same request can have made something. */
const BEFORE_THE_KEY: readonly number[] = [401, 403, 408, 429];

/**
 * Sends a request with the key under its name, which is kept until an answer says what has become of the request. Until then the terms of
 * the first try are sent, whatever has changed: with the key of another body, the control plane would say nothing of what was made.
 */
export async function sendOnce<Answer, Terms = undefined>(
  name: string,
  request: (key: string, terms: Terms) => Promise<Answer>,
  terms?: Terms,
): Promise<Answer> {
  const known = keptKey(name);
  const key = known?.key ?? newIdempotencyKey();
  // Whoever leaves the page before the answer has lost it, too.
  const sent = (known?.isUnanswered ? known.terms : terms) as Terms;
  keepKey(name, { key, isUnanswered: true, terms: sent });
  try {
    const answer = await request(key, sent);
    forgetKey(name);
    return answer;
  } catch (error) {
    if (isOfApi(error) && !BEFORE_THE_KEY.includes(error.status)) forgetKey(name);
    else if (isOfApi(error)) keepKey(name, { key, isUnanswered: known?.isUnanswered ?? false, terms: sent });
    throw error;
  }
}

/** Tells whether the control plane has refused a request: a proxy knows nothing, and what fails can fail after the act. */
function isOfApi(error: unknown): error is ApiError {
  return error instanceof ApiError && error.status < 500 && error.code !== UNEXPECTED_ANSWER;
}
