import { expect, it } from 'vitest';
import { Passwords } from '../../control-plane/services/secrets/passwords.js';

const CHEAP = { N: 2, r: 1, p: 1 };

it('a password is verified by what is stored of it, whatever it cost then', async () => {
  const stored = await new Passwords(CHEAP).hash('correct horse');
  expect(stored).toMatch(/^scrypt\$2\$1\$1\$/);
  const today = new Passwords({ N: 4, r: 1, p: 1 });
  expect(await today.verify('correct horse', stored)).toBe(true);
  expect(await today.verify('correct horses', stored)).toBe(false);
  expect(await today.verify('nobody has this password', undefined)).toBe(false);
});

it('so many are hashed or wait at once, and no more', async () => {
  const passwords = new Passwords(CHEAP);
  const attempts = Array.from({ length: 150 }, () =>
    passwords.hash('x').then(
      () => 'done',
      (error: unknown) => error,
    ),
  );
  const outcomes = await Promise.all(attempts);
  expect(outcomes.filter((outcome) => outcome === 'done')).toHaveLength(102);
  expect(outcomes.at(-1)).toMatchObject({ code: 'RATE_LIMITED', extra: { retry_after_seconds: 10 } });
  expect(await passwords.hash('x')).toMatch(/^scrypt/);
});

it('an unknown address is verified again after a crowd, though it was turned away in it', async () => {
  const passwords = new Passwords(CHEAP);
  const crowd = Array.from({ length: 102 }, () => passwords.hash('x'));
  await expect(passwords.verify('x', undefined)).rejects.toMatchObject({ code: 'RATE_LIMITED' });
  await Promise.all(crowd);
  expect(await passwords.verify('x', undefined)).toBe(false);
});

it('an account without a password takes as long as one with another', async () => {
  const passwords = new Passwords(CHEAP);
  const crowd = Array.from({ length: 102 }, () => passwords.hash('x'));
  // It waits for its turn like every other.
  await expect(passwords.verify('', '')).rejects.toMatchObject({ code: 'RATE_LIMITED' });
  await Promise.all(crowd);
  expect(await passwords.verify('', '')).toBe(false);
});
