import { expect, it } from 'vitest';
import { Secret } from 'otpauth';
import { relyingPartyAt } from '../../control-plane/domain/identity/relying-party.js';
import { newTotpSecret, stepOf, totpUri } from '../../control-plane/services/identity/factors/totp.js';
import { randomIds } from '../../shared/ids.js';

/** The shared secret of the examples of RFC 6238; their codes have eight digits, of which these are the last six. */
const SECRET = Secret.fromLatin1('12345678901234567890').base32;

it.each([
  [59, '287082'],
  [1_111_111_109, '081804'],
  [1_111_111_111, '050471'],
  [1_234_567_890, '005924'],
  [2_000_000_000, '279037'],
  [20_000_000_000, '353130'],
])('takes the code of RFC 6238 at %i s, for a step before and after, too', (seconds, code) => {
  const step = Math.floor(seconds / 30);
  for (const skew of [-30, 0, 30]) expect(stepOf(SECRET, code, (seconds + skew) * 1_000)).toBe(step);
  for (const skew of [-60, 60]) expect(stepOf(SECRET, code, (seconds + skew) * 1_000)).toBeUndefined();
  for (const other of ['', '000000', code.slice(1), `${code}0`])
    expect(stepOf(SECRET, other, seconds * 1_000)).toBeUndefined();
});

it('makes secrets of 160 bits, which the address of an app names', () => {
  const secret = newTotpSecret(randomIds);
  expect(Secret.fromBase32(secret).bytes).toHaveLength(20);
  expect(newTotpSecret(randomIds)).not.toBe(secret);
  expect(new URL(totpUri(secret, 'a&b=c@example.com')).searchParams.get('secret')).toBe(secret);
});

it.each([
  ['https://gpus.example', { id: 'gpus.example', origin: 'https://gpus.example' }],
  ['https://gpus.example:8443', { id: 'gpus.example', origin: 'https://gpus.example:8443' }],
  ['http://localhost:8080', { id: 'localhost', origin: 'http://localhost:8080' }],
  ['http://127.0.0.1:8080', null],
  ['https://192.0.2.1', null],
  ['https://[2001:db8::1]', null],
  ['http://gpus.example', null],
  [null, null],
])('makes passkeys for %s: %j', (publicUrl, party) => {
  expect(relyingPartyAt(publicUrl)).toEqual(party);
});
