import { afterEach, expect, it, vi } from 'vitest';
import { inOneTab } from '../../console/src/data/live/one-tab.js';

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

/** Has a tab take part whose requests for the lock are answered by `request`. Returns how often it has led, and its end. */
function takePart(request: () => Promise<unknown>, signal: AbortSignal) {
  vi.stubGlobal('navigator', { locks: { request } });
  vi.stubGlobal('document', { hidden: false });
  const lead = vi.fn(() => Promise.resolve());
  const end = inOneTab({ name: 'test', lead, hear: () => undefined, latest: () => 'latest' }, signal);
  return { lead, end };
}

it('leads for itself, once, where the browser refuses locks', async () => {
  const request = vi.fn(() => Promise.reject(new DOMException('no locks here', 'SecurityError')));
  const { lead, end } = takePart(request, new AbortController().signal);
  await end;
  expect([request.mock.calls.length, lead.mock.calls.length]).toEqual([1, 1]);
});

it('waits before it asks again for a turn that was taken from it', async () => {
  vi.useFakeTimers();
  const ending = new AbortController();
  const request = vi.fn(() => Promise.reject(new DOMException('stolen', 'AbortError')));
  const { lead, end } = takePart(request, ending.signal);
  await vi.advanceTimersByTimeAsync(900);
  expect(request).toHaveBeenCalledTimes(1);
  await vi.advanceTimersByTimeAsync(5_000);
  expect(request.mock.calls.length).toBeGreaterThan(1);
  expect(request.mock.calls.length).toBeLessThan(8);
  ending.abort();
  await end;
  expect(lead).not.toHaveBeenCalled();
});
