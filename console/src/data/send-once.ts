import { ApiError, UNEXPECTED_ANSWER } from '../../../client/api/errors.js';
import { forgetKey, keepKey, keptKey, newKey } from './request-keys.js';

/** Answers that come before the control plane looks at the key: an earlier try of the same request can have made something. */
const BEFORE_THE_KEY: readonly number[] = [401, 403, 408, 429];

/** Sends a request with the key under its name, which is kept until an answer says what has become of the request. */
export async function sendOnce<Answer>(name: string, request: (key: string) => Promise<Answer>): Promise<Answer> {
  const known = keptKey(name);
  const key = known?.key ?? newKey();
  // Whoever leaves the page before the answer has lost it, too.
  keepKey(name, { key, isUnanswered: true });
  try {
    const answer = await request(key);
    forgetKey(name);
    return answer;
  } catch (error) {
    if (isOfApi(error) && !BEFORE_THE_KEY.includes(error.status)) forgetKey(name);
    else if (isOfApi(error)) keepKey(name, { key, isUnanswered: known?.isUnanswered ?? false });
    throw error;
  }
}

/** Tells whether the control plane has refused a request: a proxy knows nothing, and what fails can fail after the act. */
function isOfApi(error: unknown): error is ApiError {
  return error instanceof ApiError && error.status < 500 && error.code !== UNEXPECTED_ANSWER;
}
