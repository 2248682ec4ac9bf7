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

it('is for nothing else, and no other link is for it', async () => {
  const token = await makeLink();
  const reset = { token, new_password: 'another password' };
  expect((await test.api.request('POST', '/v1/auth/password-reset/confirm', reset)).status).toBe(404);
  expect((await test.api.as(token).request('GET', '/v1/me')).status).toBe(401);
  const resetLink = await test.operator.post<{ token: string }>(
    `/v1/operator/users/${renter.userId}/password-reset`,
    { reason: 'test' },
  );
  expect(await isRefused(resetLink.token)).toBe(true);
  expect(await isRefused('')).toBe(false);
});

it('is made by a session with a fresh proof alone, and gives no more than that session has', async () => {
  await addApp(test, renter.api);
  const { browser } = await use(await makeLink());
  const session = (await browser.cookies())['__Host-gpurent'] ?? '';
  // The browser's session has no proof: it can neither make a link nor remove the second factor.
  expect(await test.api.as(session).request('POST', PATH)).toMatchObject({ status: 403 });
  const { key } = await renter.api.post<{ key: string }>('/v1/api-keys', { name: 'k' });
  expect([401, 403]).toContain((await test.api.as(key).request('POST', PATH)).status);
  test.clock.advance(16 * 60_000);
  const refused = await renter.api.request<{ error: { code: string } }>('POST', PATH);
  expect(refused.body).toMatchObject({ error: { code: 'PROOF_REQUIRED' } });
});

it('is kept as a hash, in memory', async () => {
  const token = await makeLink();
  expect(test.everythingStored()).not.toContain(token);
  await test.restart();
  expect(await isRefused(token)).toBe(true);
});
