import { expect, it } from 'vitest';
import { recent } from '../../shared/recent.js';

it('what was used longest ago is forgotten, and what is set again counts once', () => {
  const cache = recent<{ of: string }>(2);
  for (const key of ['a', 'b', 'a', 'a']) cache.set(key, { of: key });
  expect([...cache.keys()]).toEqual(['a', 'b']);
  expect(cache.get('b')).toEqual({ of: 'b' });
  cache.set('c', { of: 'c' });
  expect([cache.has('a'), cache.has('b'), cache.has('c')]).toEqual([false, true, true]);
});
