import { afterEach, expect, it, vi } from 'vitest';
import { DAY_MS } from '../../shared/time.js';
import { ApiError, UnreachableError } from '../../client/api/errors.js';
import { keptKey, nameOf } from '../../console/src/data/api/request-keys.js';
import { sendOnce } from '../../console/src/data/api/send-once.js';

const lost = new UnreachableError('https://gpus.example', new Error('reset'));
const refusal = (status: number, code: string) => new ApiError(status, { code, message: '', request_id: '' });

afterEach(() => vi.useRealTimers());

/** Sends a request that is answered so. Returns its key. */
async function sent(name: string, answer?: Error): Promise<string> {
  let seen = '';
  await sendOnce(name, (key) => {
    seen = key;
    return answer ? Promise.reject(answer) : Promise.resolve();
  }).catch(() => undefined);
  return seen;
}

it('names a request by its content, whatever the order of its fields', () => {
  expect(nameOf(['ada', { a: 1, b: { c: [2], d: 3 } }])).toBe(nameOf(['ada', { b: { d: 3, c: [2] }, a: 1 }]));
  expect(nameOf(['ada', { a: 1 }])).not.toBe(nameOf(['bob', { a: 1 }]));
  expect(nameOf(['ada', { list: [1, 2] }])).not.toBe(nameOf(['ada', { list: [2, 1] }]));
  expect(nameOf([{ value: 'swordfish' }])).toMatch(/^gpurent\.request\.[0-9a-f]{64}$/);
});

it.each([
  ['a lost answer', lost],
  ['an internal error', refusal(500, 'INTERNAL')],
  ['a payment provider that does not answer', refusal(503, 'UNAVAILABLE')],
  ['a page of a proxy', refusal(404, 'UNEXPECTED_ANSWER')],
])('sends the same key after %s, and says that nobody knows', async (what, error) => {
  const name = nameOf([what]);
  const key = await sent(name, error);
  expect(keptKey(name)).toMatchObject({ key, isUnanswered: true });
  expect(await sent(name)).toBe(key);
  expect(keptKey(name)).toBeUndefined();
  expect(await sent(name)).not.toBe(key);
});

it.each([
  ['401', refusal(401, 'TOKEN_INVALID')],
  ['403', refusal(403, 'PROOF_REQUIRED')],
  ['429', refusal(429, 'RATE_LIMITED')],
])('keeps the key over %s, which says nothing of an earlier try', async (what, error) => {
  const name = nameOf([what]);
  const key = await sent(name, error);
  expect(keptKey(name)).toMatchObject({ key, isUnanswered: false });
  expect(await sent(name, lost)).toBe(key);
  expect(await sent(name, error)).toBe(key);
  expect(keptKey(name)).toMatchObject({ key, isUnanswered: true });
});

it('sends the terms of the first try again after a lost answer, and new ones otherwise', async () => {
  const seen: unknown[] = [];
  const trial = (price: number, answer?: Error) =>
    sendOnce(
      nameOf(['terms']),
      (_, terms) => {
        seen.push(terms);
        return answer ? Promise.reject(answer) : Promise.resolve();
      },
      price,
    ).catch(() => undefined);
  await trial(1, refusal(403, 'PROOF_REQUIRED'));
  await trial(2, lost);
  await trial(3, refusal(429, 'RATE_LIMITED'));
  await trial(4);
  await trial(5);
  expect(seen).toEqual([1, 2, 2, 2, 5]);
});

it.each([402, 404, 409, 422])('takes another key after a refusal with %s', async (status) => {
  const name = nameOf([status]);
  const key = await sent(name, refusal(status, 'REFUSED'));
  expect(keptKey(name)).toBeUndefined();
  expect(await sent(name, lost)).not.toBe(key);
});

it('forgets a key when the control plane has', async () => {
  vi.useFakeTimers();
  const name = nameOf(['old']);
  const key = await sent(name, lost);
  vi.advanceTimersByTime(DAY_MS - 1);
  expect(await sent(name, lost)).toBe(key);
  vi.advanceTimersByTime(1);
  expect(keptKey(name)).toBeUndefined();
  expect(await sent(name, lost)).not.toBe(key);
});
