import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { TestControlPlane, type Renter } from '../harness/control-plane.js';
import { beforeStatements } from '../harness/failing-statements.js';
import { mailsAreSettled } from '../harness/mails.js';
import { TestSmtp } from '../harness/smtp.js';

/** Nobody can tell from the time that an answer takes whether an account exists, if the same is done for every address. */

const WRONG = 'a password that nobody has';
const HASHED = 'a password is hashed';

let smtp: TestSmtp;
let test: TestControlPlane;
let renter: Renter;
beforeAll(async () => {
  smtp = await TestSmtp.start();
  test = await TestControlPlane.start({ mail: smtp.settings });
  renter = await test.renter(0);
  test.advance(1_000);
  await mailsAreSettled(test);
});
afterAll(async () => {
  await test.stop();
  await smtp.stop();
});

/** The passwords that are hashed, the statements that run and the workers that wake for a request, in their order. */
async function workOf(path: string, body: object): Promise<{ status: number; code: unknown; work: string[] }> {
  const { store, passwords } = test.core.platform;
  const work: string[] = [];
  // After some answers, the harness reads what the control plane remembers.
  const compare = vi.spyOn(test, 'checkMemory').mockReturnValue();
  const end = beforeStatements(store, (statement) => work.push(statement.compile().sql));
  const inTurn = Reflect.get(passwords, 'inTurn') as (hash: () => Promise<unknown>) => Promise<unknown>;
  const watched = (hash: () => Promise<unknown>) => {
    work.push(HASHED);
    return inTurn.call(passwords, hash);
  };
  Object.assign(passwords, { inTurn: watched });
  const { status, body: answered } = await test.api.request<Record<string, unknown>>('POST', path, body);
  end();
  compare.mockRestore();
  Reflect.deleteProperty(passwords, 'inTurn');
  return { status, code: answered['code'], work };
}

it.each([
  ['a sign-in', '/v1/auth/sign-in', { password: WRONG }, 401, 1],
  ['a request for a new password', '/v1/auth/password-reset', {}, 202, 0],
  ['a sign-up, where there is mail', '/v1/auth/sign-up', { password: WRONG, name: 'N' }, 202, 1],
] as const)('%s does the same for every address', async (_name, path, more, status, hashes) => {
  const known = await workOf(path, { ...more, email: renter.email });
  const unknown = await workOf(path, { ...more, email: `nobody-${status}@example.com` });
  expect(known).toEqual(unknown);
  expect(known.status).toBe(status);
  expect(known.work.filter((each) => each === HASHED)).toHaveLength(hashes);
  expect(known.work.length).toBeGreaterThan(hashes);
});
