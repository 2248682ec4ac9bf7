import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { Browser, textOf, type Shown } from '../harness/browser.js';
import { TestControlPlane, type Renter } from '../harness/control-plane.js';
import { addApp } from '../harness/second-factors.js';

const PATH = '/v1/auth/sign-in-link';
const PAGE = '/sign-in/link';
const TEN_MINUTES = 600_000;

let test: TestControlPlane;
let renter: Renter;
beforeAll(async () => {
  test = await TestControlPlane.start();
});
afterAll(() => test.stop());
beforeEach(async () => {
  renter = await test.renter(0);
});

async function makeLink({ api } = renter): Promise<string> {
  return (await api.post<{ token: string }>(PATH)).token;
}

/** Sends the form of the page, as its script fills it in, from a new browser. */
async function use(token: string): Promise<{ browser: Browser; shown: Shown }> {
  const { port } = new URL(test.url);
  const browser = new Browser(Number(port), `http://localhost:${port}`);
  return { browser, shown: await browser.submit(await browser.open(PAGE), PAGE, { token }) };
}

async function isRefused(token: string): Promise<boolean> {
  const { browser, shown } = await use(token);
  return textOf(shown.text).includes('This link is wrong') && !('__Host-gpurent' in (await browser.cookies()));
}

it('signs a browser in, once', async () => {
  const token = await makeLink();
  const { browser } = await use(token);
  expect(textOf((await browser.open('/account')).text)).toContain(`You are signed in as Renter, ${renter.email}.`);
  expect(await isRefused(token)).toBe(true);
});

it('ends after ten minutes, with another link of the session, and with the session', async () => {
  const late = await makeLink();
  test.clock.advance(TEN_MINUTES - 1);
  const timely = await test.renter(0);
  const made = await makeLink(timely);
  test.clock.advance(1);
  expect(await isRefused(late)).toBe(true);
  const newer = await makeLink(timely);
  expect(await isRefused(made)).toBe(true);
  await timely.api.post('/v1/auth/sign-out');
  expect(await isRefused(newer)).toBe(true);
});

it('ends with a new password and with the end of all other sessions, although its session lasts', async () => {
  const change = { current_password: 'a renter password', new_password: 'another fine password' };
  const before = await makeLink();
  expect((await renter.api.request('POST', '/v1/auth/password', change)).status).toBe(204);
  expect(await isRefused(before)).toBe(true);
  const second = await makeLink();
  expect((await renter.api.request('DELETE', '/v1/auth/sessions')).status).toBe(200);
  expect(await isRefused(second)).toBe(true);
});

it('is for nothing else, and no other link is for it', async () => {
  const token = await makeLink();
  const reset = { token, new_password: 'another password' };
  expect((await test.api.request('POST', '/v1/auth/password-reset/confirm', reset)).status).toBe(404);
  expect((await test.api.as(token).request('GET', '/v1/me')).status).toBe(401);
  const resetLink = await test.operator.post<{ token: string }>(`/v1/operator/users/${renter.userId}/password-reset`, {
    reason: 'test',
  });
  expect(await isRefused(resetLink.token)).toBe(true);
});

it('is made by a session with a fresh proof alone, and gives no more than that session has', async () => {
  await addApp(test, renter.api);
  const { browser } = await use(await makeLink());
  const session = (await browser.cookies())['__Host-gpurent'] ?? '';
  // The browser's session has no proof: it can neither make a link nor remove the second factor.
  expect(await test.api.as(session).request('POST', PATH)).toMatchObject({ status: 403 });
  const { secret } = await renter.api.post<{ secret: string }>('/v1/api-keys', { name: 'k' });
  expect((await test.api.as(secret).request('POST', PATH)).status).toBe(401);
  test.clock.advance(16 * 60_000);
  const refused = await renter.api.request('POST', PATH);
  expect(refused.body).toMatchObject({ code: 'PROOF_REQUIRED' });
});

it('has a page with one script of our own, which tells its address to nobody', async () => {
  const { headers, text } = (await use('')).shown;
  expect(headers['content-security-policy']).toMatch(
    /^default-src 'none'; script-src 'self'; style-src 'sha256-[^']+'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'$/,
  );
  expect(headers).toMatchObject({ 'referrer-policy': 'same-origin', 'cache-control': 'no-store' });
  expect(text.match(/<script/g)).toHaveLength(1);
});

it('is kept as a hash, in memory', async () => {
  const token = await makeLink();
  expect(test.everythingStored()).not.toContain(token);
  await test.restart();
  expect(await isRefused(token)).toBe(true);
});
