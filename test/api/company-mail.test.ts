import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { Browser } from '../harness/browser.js';
import { begin, comeBack, setCompany } from '../harness/companies.js';
import { PUBLIC_URL, TestControlPlane } from '../harness/control-plane.js';
import { TestIssuer } from '../harness/issuer.js';
import { mailsAreSettled } from '../harness/mails.js';
import { TestSmtp } from '../harness/smtp.js';

const ALICE = { sub: 'alice', email: 'alice@acme.example', email_verified: true };

let smtp: TestSmtp;
let issuer: TestIssuer;
let test: TestControlPlane;
let restore: () => void;

beforeAll(async () => {
  smtp = await TestSmtp.start();
  test = await TestControlPlane.start({ mail: smtp.settings });
  issuer = await TestIssuer.start([`${PUBLIC_URL}/sign-in/company/acme/return`]);
  await setCompany(test, issuer.url);
  restore = test.snapshot();
});
beforeEach(async () => {
  const browser = new Browser(Number(new URL(test.url).port), PUBLIC_URL);
  await comeBack(browser, await issuer.signIn(await begin(browser), ALICE));
  await settled();
});
afterEach(async () => {
  await settled();
  restore();
  test.clock.advance(2 * 3_600_000);
});
afterAll(async () => {
  await Promise.all([smtp.stop(), issuer.stop()]);
  await test.stop();
});

async function settled(): Promise<void> {
  test.advance(1_000);
  await mailsAreSettled(test);
}

/** The subjects of the mails that are sent after somebody has asked for a new password. */
async function askForPassword(): Promise<(string | undefined)[]> {
  smtp.received.length = 0;
  const asked = await test.api.request('POST', '/v1/auth/password-reset', { email: ALICE.email });
  expect(asked.status).toBe(202);
  await settled();
  return smtp.received.map(({ mail }) => mail.subject);
}

describe('a link to a new password', () => {
  it('goes to nobody who signs in at a company only, until its issuer is removed', async () => {
    expect(await askForPassword()).toEqual([]);
    await test.operator.delete('/v1/operator/issuers/acme');
    expect(await askForPassword()).toEqual(['Set a new password']);
  });

  it('goes to nobody whose company has switched passwords off', async () => {
    await setCompany(test, 'https://other.example', { domains: [{ domain: 'acme.example', passwords_off: true }] });
    expect(await askForPassword()).toEqual([]);
  });
});

describe('a sign-up', () => {
  it('that was begun before passwords were switched off is not confirmed', async () => {
    const account = { email: 'new@acme.example', password: 'a fine password', name: 'New' };
    smtp.received.length = 0;
    expect((await test.api.request('POST', '/v1/auth/sign-up', account)).status).toBe(202);
    await settled();
    const token = /\bnew_[0-9a-f]{64}\b/.exec(smtp.received[0]?.mail.text ?? '')?.[0];
    await setCompany(test, issuer.url, { domains: [{ domain: 'acme.example', passwords_off: true }] });
    const confirmed = await test.api.request('POST', '/v1/auth/sign-up/confirm', { token, password: account.password });
    expect(confirmed).toMatchObject({ status: 403, body: { code: 'PASSWORD_OFF' } });
  });
});
