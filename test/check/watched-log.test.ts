import { expect, it } from 'vitest';
import type { Answer } from '../harness/api-client.js';
import { WatchedLog } from '../harness/watched-log.js';

const answer = (body: unknown) => ({ status: 200, headers: new Headers(), body }) as Answer<unknown>;

it.each([
  ['a token that was answered', 'ses_0123456789abcdef', { token: 'ses_0123456789abcdef' }, undefined],
  ['what of a token is the secret', 'enr_0123456789abcdef', { token: 'enr_0123456789abcdef.AbCd' }, undefined],
  ['a token in a link', 'f00df00df00df00d', { open_url: 'http://host/?a=1&token=f00df00df00df00d' }, undefined],
  ['a password that was sent', 'correct horse', {}, { new_password: 'correct horse' }],
  ['what is in an environment', 'first\nsecond "line"', {}, { env: { KEY: 'first\nsecond "line"' } }],
  ['the same, in a list', 'a value of theirs', {}, { env: [{ key: 'KEY', value: 'a value of theirs' }] }],
])('%s is found in a log', async (_, secret, answered, asked) => {
  const log = new WatchedLog();
  await log.inspect('POST', '/', answer(answered), asked);
  log.logger.info('a line of no interest');
  log.check();
  log.check(['another one']);
  expect(() => log.check([`{"msg":"said ${secret}"}`])).toThrow(/a secret was logged/);
  log.logger.trace({ deep: [{ inside: secret }] }, 'said');
  expect(() => log.check()).toThrow(/a secret was logged/);
});
