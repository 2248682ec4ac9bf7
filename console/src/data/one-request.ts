import { useState } from 'react';
import { ApiError } from './api.js';

/** Nobody knows whether what was asked is done. The same request asks again, and nothing is done twice. */
export class UnansweredError extends Error {
  override readonly name = 'UnansweredError';
}

type Headers = { 'Idempotency-Key': string };

/**
 * Sends requests that make something. Each has one Idempotency-Key until an answer comes, however often it is sent: so a request whose
 * answer was lost makes nothing twice.
 */
export class OneRequest {
  /** By body: the keys of the requests that have no answer yet. Each was sent by hand, so there are few. */
  readonly #keys = new Map<string, string>();

  /** `perhaps` says what may have been done. Throws UnansweredError if no answer of the API came. */
  async send<Answer>(body: object, perhaps: string, request: (headers: Headers) => Promise<Answer>): Promise<Answer> {
    const text = JSON.stringify(body);
    const key = this.#keys.get(text) ?? crypto.randomUUID();
    this.#keys.set(text, key);
    try {
      const answer = await request({ 'Idempotency-Key': key });
      this.#keys.delete(text);
      return answer;
    } catch (error) {
      // The API keeps no key of what it has refused. Anything of 500 and above can be a proxy that knows nothing.
      if (error instanceof ApiError && error.status < 500) {
        this.#keys.delete(text);
        throw error;
      }
      const reason = error instanceof Error ? error.message : String(error);
      throw new UnansweredError(`${reason}. ${perhaps}`, { cause: error });
    }
  }

  /** Tells whether a request with this body was sent, and has no answer yet. */
  isOpen(body: object): boolean {
    return this.#keys.has(JSON.stringify(body));
  }
}

/** The requests of a form, for as long as it is shown. */
export function useOneRequest(): OneRequest {
  return useState(() => new OneRequest())[0];
}
