import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { MINUTE_MS } from '../../shared/time.js';
import { Browser, hiddenFieldsOf, textOf, type Shown } from '../harness/browser.js';
import { TestControlPlane, type Renter } from '../harness/control-plane.js';
import { addApp, codeAt, nextCode, type App } from '../harness/second-factors.js';

const PASSWORD = 'a renter password';
const SECOND_STEP = '/sign-in/second-factor';
const FACTORS = '/account/second-factors';

let test: TestControlPlane;
let renter: Renter;
let browser: Browser;
beforeAll(async () => {
  test = await TestControlPlane.start();
  await test.restart({ publicUrl: home() });
});
afterAll(() => test.stop());
beforeEach(async () => {
  renter = await test.renter(0);
  browser = new Browser(Number(new URL(test.url).port), home());
});

const home = () => test.url.replace('127.0.0.1', 'localhost');
const pathOf = ({ url }: Shown) => new URL(url).pathname + new URL(url).search;
/** What a person is told is wrong. */
const problemOf = ({ text }: Shown) => textOf(/<div class="problem" role="alert">.*?<\/div>/s.exec(text)?.[0] ?? '');
const codesOf = ({ text }: Shown) => [...text.matchAll(/<code>([0-9a-f-]{23})<\/code>/g)].map(([, code = '']) => code);
const secretOf = ({ text }: Shown) => (/<code>([A-Z2-7 ]+)<\/code>/.exec(text)?.[1] ?? '').replaceAll(' ', '');

async function signIn(where = '/sign-in'): Promise<Shown> {
  return browser.submit(await browser.open(where), '/sign-in', { email: renter.email, password: PASSWORD });
}

/** Signs in with an app, and returns the page after that. */
async function signInWith(app: App): Promise<Shown> {
  return browser.submit(await signIn(), SECOND_STEP, { code: nextCode(test, app) });
}

describe('a sign-in with a second factor', () => {
  it('asks for the code on a page of its own, without script, and leads back', async () => {
    const app = await addApp(test, renter.api);
    const asked = await signIn('/sign-in?return_to=%2Faccount%2Fpassword');
    expect(pathOf(asked)).toBe(`${SECOND_STEP}?return_to=%2Faccount%2Fpassword`);
    expect(await browser.cookies()).not.toHaveProperty('__Host-gpurent');
    const [cookie] = (await browser.jar.getCookies(home())).filter(({ key }) => key === '__Host-gpurent-factor');
    expect(cookie).toMatchObject({ secure: true, httpOnly: true, sameSite: 'lax', maxAge: 600 });
    expect(asked.text).not.toContain(cookie?.value);
    const wrong = await browser.submit(asked, SECOND_STEP, { code: '0000000' });
    expect([wrong.status, problemOf(wrong)]).toEqual([
      401,
      'This code is wrong, or it was used already. Wait for the next one, or use another factor.',
    ]);
    const code = nextCode(test, app);
    const page = await browser.submit(wrong, SECOND_STEP, { code: ` ${code.slice(0, 3)} ${code.slice(3)}` });
    expect(pathOf(page)).toBe('/account/password');
    expect(Object.keys(await browser.cookies())).not.toContain('__Host-gpurent-factor');
  });

  it('takes a recovery code, too', async () => {
    const { recoveryCodes } = await addApp(test, renter.api);
    const page = await browser.submit(await signIn(), SECOND_STEP, { code: recoveryCodes[0] ?? '' });
    expect(pathOf(page)).toBe('/account');
  });

  it('is over after ten minutes, and without its cookie', async () => {
    const app = await addApp(test, renter.api);
    const asked = await signIn();
    test.clock.advance(10 * MINUTE_MS);
    const late = await browser.submit(asked, SECOND_STEP, { code: codeAt(app.secret, test.clock.now()) });
    expect([late.status, problemOf(late)]).toEqual([401, 'This sign-in is over. Sign in again.']);
    const stranger = new Browser(Number(new URL(test.url).port), home());
    expect(textOf((await stranger.open(SECOND_STEP)).text)).toContain('This sign-in is over. Sign in again.');
  });

  it('is nothing that a page elsewhere can go on with', async () => {
    const app = await addApp(test, renter.api);
    const asked = await signIn();
    const form = { ...hiddenFieldsOf(asked, SECOND_STEP), code: nextCode(test, app) };
    const from = 'https://evil.example';
    const shown = await browser.send(SECOND_STEP, { method: 'POST', from, isNavigation: true, form });
    expect(shown.status).toBe(403);
    const forged = { method: 'POST', from: home(), form: { ...form, form_token: 'x' } };
    expect((await browser.send(SECOND_STEP, forged)).status).toBe(403);
  });
});

describe('the page of the second factors', () => {
  it('adds an authenticator app, and shows recovery codes once', async () => {
    await signIn();
    const page = await browser.open(`${FACTORS}/totp`);
    expect(page.text).toMatch(/<svg\s+class="qr"/);
    const [secret, typed] = [secretOf(page), { name: 'my phone' }];
    const wrong = await browser.submit(page, `${FACTORS}/totp`, { ...typed, code: '000000' });
    expect([wrong.status, secretOf(wrong)]).toEqual([401, secret]);
    const code = codeAt(secret, test.clock.now());
    const added = await browser.submit(wrong, `${FACTORS}/totp`, { ...typed, code });
    expect([added.status, codesOf(added).length]).toEqual([200, 10]);
    expect(added.headers['cache-control']).toBe('no-store');
    const listed = await browser.open(FACTORS);
    expect(textOf(listed.text)).toContain('my phone (Authenticator app)');
    expect(codesOf(listed)).toEqual([]);
    const again = await browser.submit(page, `${FACTORS}/totp`, { ...typed, code });
    expect([again.status, secretOf(again) === secret]).toEqual([401, false]);
  });

  it('makes new recovery codes, and removes factors', async () => {
    const app = await addApp(test, renter.api);
    await signInWith(app);
    const renewed = await browser.submit(await browser.open(FACTORS), `${FACTORS}/recovery-codes`);
    expect(codesOf(renewed)).toHaveLength(10);
    const removed = await browser.submit(await browser.open(FACTORS), `${FACTORS}/remove`);
    expect(textOf(removed.text)).toContain('The second factor is removed.');
    expect(textOf(removed.text)).toContain('your password alone opens your account');
    expect((await renter.api.request('GET', '/v1/me')).status).toBe(200);
  });

  it('asks first who it is when that is long ago, and leads back', async () => {
    const app = await addApp(test, renter.api);
    await signInWith(app);
    test.clock.advance(16 * MINUTE_MS);
    for (const path of [`${FACTORS}/totp`, `${FACTORS}/passkey`, '/account/password'])
      expect(pathOf(await browser.open(path))).toBe(`/account/prove?return_to=${encodeURIComponent(path)}`);
    const asked = await browser.submit(await browser.open(FACTORS), `${FACTORS}/remove`);
    expect(pathOf(asked)).toBe(`/account/prove?return_to=${encodeURIComponent(FACTORS)}`);
    const half = await browser.submit(asked, '/account/prove', { password: PASSWORD });
    expect([half.status, problemOf(half)]).toEqual([403, 'Give the code, too.']);
    const wrong = await browser.submit(half, '/account/prove', { password: 'wrong', code: nextCode(test, app) });
    expect([wrong.status, problemOf(wrong)]).toEqual([401, 'The password is wrong.']);
    const proven = { password: PASSWORD, code: nextCode(test, app) };
    expect(pathOf(await browser.submit(wrong, '/account/prove', proven))).toBe(FACTORS);
    expect(pathOf(await browser.open('/account/password'))).toBe('/account/password');
  });

  it('asks users without a factor before they add one, and not before they change the password', async () => {
    await signIn();
    test.clock.advance(16 * MINUTE_MS);
    const asked = await browser.open(`${FACTORS}/totp`);
    expect(textOf(asked.text)).not.toContain('authenticator app shows');
    expect(pathOf(await browser.open('/account/password'))).toBe('/account/password');
    expect(pathOf(await browser.submit(asked, '/account/prove', { password: PASSWORD }))).toBe(`${FACTORS}/totp`);
  });

  it('shows a removal that an operator has asked for, with its reason, and cancels it', async () => {
    const app = await addApp(test, renter.api);
    const reason = '<b>lost</b> telephone';
    await test.operator.post(`/v1/operator/users/${renter.userId}/second-factor-removal`, { reason });
    await signInWith(app);
    const page = await browser.open(FACTORS);
    expect(textOf(page.text)).toContain(`The reason that the operator gives: ${reason}`);
    const cancelled = await browser.submit(page, `${FACTORS}/cancel-removal`);
    expect(textOf(cancelled.text)).toContain('The removal is cancelled.');
    expect(await renter.api.get('/v1/me/second-factors')).toMatchObject({ removal: null });
  });

  it('refuses what is no answer of a passkey', async () => {
    await signIn();
    const page = await browser.open(`${FACTORS}/passkey`);
    const form_token = /name="form_token" value="([^"]+)"/.exec(page.text)?.[1] ?? '';
    for (const passkey of ['nonsense', '[]', '{}', '{"id":"x","response":{"clientDataJSON":"e30"}}']) {
      const sent = { method: 'POST', from: home(), form: { form_token, name: 'x', passkey } };
      expect((await browser.open(`${FACTORS}/passkey`, sent)).status, passkey).toBe(401);
    }
  });
});

it('runs the script of this origin on pages with passkeys alone', async () => {
  await signIn();
  const scriptless = `${FACTORS}/totp`;
  for (const path of [SECOND_STEP, '/account/prove', `${FACTORS}/passkey`, scriptless]) {
    const { text, headers } = await browser.open(path);
    const policy = String(headers['content-security-policy']);
    const isWith = path !== scriptless;
    expect(policy.includes("script-src 'self';"), path).toBe(isWith);
    expect(policy).toMatch(/^default-src 'none';/);
    expect(text.match(/<script[^>]*>/g), path).toEqual(isWith ? ['<script src="/passkeys.js" defer>'] : null);
    expect(text).not.toMatch(/\son\w+=|\sstyle="|javascript:/i);
  }
  const script = await browser.open('/passkeys.js');
  expect(script.headers['content-type']).toBe('text/javascript; charset=utf-8');
  expect(script.headers['x-content-type-options']).toBe('nosniff');
});
