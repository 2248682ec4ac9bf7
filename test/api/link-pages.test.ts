import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { Browser, hiddenFieldsOf, textOf, type Shown } from '../harness/browser.js';
import { PUBLIC_URL, TestControlPlane, type Renter } from '../harness/control-plane.js';
import { mailsAreSettled } from '../harness/mails.js';
import { TestSmtp } from '../harness/smtp.js';

const PASSWORD = 'correct horse battery';
const INVALID = 'This link is wrong, or it was used or has expired. Ask for a new one.';

let smtp: TestSmtp;
let test: TestControlPlane;
let renter: Renter;
let browser: Browser;
beforeAll(async () => {
  smtp = await TestSmtp.start();
  test = await TestControlPlane.start({ mail: smtp.settings });
  test.advance(1_000);
  await mailsAreSettled(test);
});
beforeEach(async () => {
  renter = await test.renter(0);
  browser = new Browser(Number(new URL(test.url).port), PUBLIC_URL);
});
afterEach(() => mailsAreSettled(test));
afterAll(async () => {
  await smtp.stop();
  await test.stop();
});

const pathOf = ({ url }: Shown) => new URL(url).pathname + new URL(url).search;
const problemOf = ({ text }: Shown) => textOf(/<div class="problem" role="alert">.*?<\/div>/s.exec(text)?.[0] ?? '');
const noticeOf = ({ text }: Shown) => textOf(/<p class="notice" role="status">.*?<\/p>/s.exec(text)?.[0] ?? '');

/** The path of the link in the newest mail. */
async function mailedLink(): Promise<string> {
  smtp.received.length = 0;
  test.advance(1_000);
  const [received] = await smtp.gets(1);
  await mailsAreSettled(test);
  const link = /https:\/\/gpus\.example(\/[a-z-]+\?token=\w+)/.exec(received?.mail.text ?? '')?.[1];
  if (link === undefined) throw new Error(`no link: ${received?.mail.text}`);
  return link;
}

async function askForLink(): Promise<string> {
  await browser.submit(await browser.open('/forgot-password'), '/forgot-password', { email: renter.email });
  return mailedLink();
}

async function signIn(password: string): Promise<Shown> {
  return browser.submit(await browser.open('/sign-in'), '/sign-in', { email: renter.email, password });
}

describe('a forgotten password', () => {
  it('is asked for on the page of the sign-in, which answers alike for every address', async () => {
    expect((await browser.open('/sign-in')).text).toContain('href="/forgot-password"');
    const page = await browser.open('/forgot-password');
    const known = await browser.submit(page, '/forgot-password', { email: renter.email });
    const unknown = await browser.submit(page, '/forgot-password', { email: 'nobody@example.com' });
    expect(pathOf(known)).toBe('/forgot-password?done=link-mailed');
    expect([unknown.url, unknown.text]).toEqual([known.url, known.text]);
    expect(noticeOf(known)).toContain('If the address has an account');
    await mailedLink();
    for (let time = 0; time < 2; time++) await browser.submit(page, '/forgot-password', { email: renter.email });
    const refused = await browser.submit(page, '/forgot-password', { email: renter.email });
    expect([refused.status, problemOf(refused)]).toEqual([
      409,
      'Three links in an hour are the limit for an address. Use the newest one, or try again later.',
    ]);
    expect(hiddenFieldsOf(refused, '/forgot-password')).toMatchObject({ email: renter.email });
    test.advance(1_000);
  });

  it('is set by the link of the mail, once; the token stays through a mistake', async () => {
    const page = await browser.open(await askForLink());
    const short = await browser.submit(page, '/reset-password', { new_password: 'short' });
    expect([short.status, problemOf(short)]).toEqual([422, 'Give a password of 12 to 256 characters.']);
    expect(short.text).not.toContain('value="short"');
    const done = await browser.submit(short, '/reset-password', { new_password: PASSWORD });
    expect(pathOf(done)).toBe('/sign-in?done=password-reset');
    expect(noticeOf(done)).toBe('Your password is changed, and all your sessions are ended. Sign in with the new one.');
    // It has signed nobody in.
    expect(await browser.cookies()).not.toHaveProperty('__Host-gpurent');
    expect(pathOf(await signIn(PASSWORD))).toBe('/account');
    const again = await browser.submit(page, '/reset-password', { new_password: 'another fine password' });
    expect([again.status, problemOf(again)]).toEqual([404, INVALID]);
    test.advance(1_000);
  });

  it('can take the API keys with it', async () => {
    const { secret } = await renter.api.post<{ secret: string }>('/v1/api-keys', { name: 'k' });
    const page = await browser.open(await askForLink());
    await browser.submit(page, '/reset-password', { new_password: PASSWORD, revoke_api_keys: 'yes' });
    expect((await test.api.as(secret).request('GET', '/v1/instances')).status).toBe(401);
    test.advance(1_000);
  });

  it('is set by nobody who opens the page without the token, or with a wrong one', async () => {
    for (const [path, status] of [
      ['/reset-password', 422],
      ['/reset-password?token=rst_1', 404],
      ['/reset-password?token=rst_1&token=rst_2', 422],
    ] as const) {
      const page = await browser.open(path);
      expect(page.status).toBe(200);
      expect((await browser.submit(page, '/reset-password', { new_password: PASSWORD })).status, path).toBe(status);
    }
  });

  it('that a link sets in a browser ends the session that somebody else has in it', async () => {
    await signIn('a renter password');
    const page = await browser.open(await askForLink());
    await browser.submit(page, '/reset-password', { new_password: PASSWORD });
    expect(pathOf(await browser.open('/account'))).toContain('/sign-in');
    test.advance(1_000);
  });

  it('where there is no mail is for the operator', async () => {
    const without = await TestControlPlane.start();
    const { port } = new URL(without.url);
    const visitor = new Browser(Number(port), `http://localhost:${port}`);
    const page = await visitor.open('/forgot-password');
    expect(textOf(page.text)).toContain('ask its operator for a link to a new password');
    expect(page.text).not.toContain('<form');
    await without.stop();
  });
});

describe('a new account', () => {
  const typed = { email: 'ann@example.com', name: 'Ann', password: PASSWORD };

  it('is created by the link of the mail, with the password of the sign-up, and is signed in then', async () => {
    const told = await browser.submit(await browser.open('/sign-up'), '/sign-up', typed);
    expect(pathOf(told)).toBe('/sign-up?done=address-mailed');
    expect(noticeOf(told)).toContain('open it to confirm the address');
    expect(await browser.cookies()).not.toHaveProperty('__Host-gpurent');
    const page = await browser.open(await mailedLink());
    const wrong = await browser.submit(page, '/confirm-address', { password: 'a guess' });
    expect([wrong.status, problemOf(wrong)]).toEqual([401, 'This is not the password of the sign-up.']);
    const done = await browser.submit(wrong, '/confirm-address', { password: PASSWORD });
    expect(pathOf(done)).toBe('/account');
    expect(textOf(done.text)).toContain('Ann, ann@example.com');
    const again = await browser.submit(page, '/confirm-address', { password: PASSWORD });
    expect([again.status, problemOf(again)]).toEqual([404, INVALID]);
  });

  it('is told of to nobody else: the page is the same for an address that has one', async () => {
    const page = await browser.open('/sign-up');
    const known = await browser.submit(page, '/sign-up', { ...typed, email: renter.email });
    const unknown = await browser.submit(page, '/sign-up', { ...typed, email: 'bob@example.com' });
    expect([known.url, known.text]).toEqual([unknown.url, unknown.text]);
    smtp.received.length = 0;
    test.advance(1_000);
    await smtp.gets(2);
  });
});
