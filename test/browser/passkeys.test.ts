import type { Browser, BrowserContext, CDPSession, Page } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { closeWindows, openContext, sharedChromium } from '../harness/chromium.js';
import { TestControlPlane, type Renter } from '../harness/control-plane.js';

const PASSWORD = 'a renter password';

let test: TestControlPlane;
let browser: Browser;
let context: BrowserContext;
let page: Page;
let devices: CDPSession;
let renter: Renter;
/** What the browser has complained of, such as a breach of the policy of a page. */
let complaints: string[];

beforeAll(async () => {
  test = await TestControlPlane.start();
  await test.restart({ publicUrl: home() });
  browser = await sharedChromium();
});
afterAll(async () => {
  await closeWindows(browser);
  await test.stop();
});
beforeEach(async () => {
  renter = await test.renter(0);
  context = await openContext(browser, { viewport: { width: 390, height: 780 } });
  page = await context.newPage();
  complaints = [];
  page.on('console', (message) => void complaints.push(message.text()));
  page.on('pageerror', (error) => void complaints.push(error.message));
  devices = await context.newCDPSession(page);
  await devices.send('WebAuthn.enable');
  return () => context.close();
});

function home(): string {
  return test.url.replace('127.0.0.1', 'localhost');
}

/** Plugs in an authenticator, whose user is there. */
async function authenticator(isUserVerified = true): Promise<string> {
  const { authenticatorId } = await devices.send('WebAuthn.addVirtualAuthenticator', {
    options: {
      protocol: 'ctap2',
      transport: 'internal',
      hasResidentKey: true,
      hasUserVerification: true,
      isUserVerified,
      automaticPresenceSimulation: true,
    },
  });
  return authenticatorId;
}

async function signIn(where = '/sign-in'): Promise<void> {
  await page.goto(`${home()}${where}`);
  await page.fill('#email', renter.email);
  await page.fill('#password', PASSWORD);
  await page.keyboard.press('Enter');
}

/** Adds a passkey to the account that is signed in; ends at what the page shows then. */
async function addPasskey(name: string): Promise<void> {
  await page.goto(`${home()}/account/second-factors/passkey`);
  await page.fill('#name', name);
  await page.click('text=Add a passkey >> nth=-1');
}

/** The title of the page. */
const title = () => page.textContent('h1');
const problem = () => page.textContent('[role=alert]');

it('adds passkeys with names, and signs in with one after the password', async () => {
  await authenticator();
  await signIn();
  await page.waitForURL('**/account');
  await addPasskey('laptop <b>');
  await page.waitForSelector('ul.codes');
  expect(await page.locator('ul.codes li').count()).toBe(10);
  await page.click('text=I have kept them');
  expect(await page.textContent('ul.sessions')).toContain('laptop <b>');
  await page.goto(`${home()}/account`);
  await page.click('text=Sign out');
  await signIn('/sign-in?return_to=%2Faccount%2Fsecond-factors');
  await page.waitForURL('**/sign-in/second-factor?**');
  await page.click('text=Use a passkey');
  await page.waitForURL('**/account/second-factors');
  expect(await page.textContent('ul.sessions')).toContain('last used');
  expect(complaints).toEqual([]);
});

it('adds no second passkey to a device that has one, but to another device', async () => {
  const first = await authenticator();
  await signIn();
  await page.waitForURL('**/account');
  await addPasskey('first');
  await page.waitForSelector('ul.codes');
  await addPasskey('again');
  await page.waitForSelector('text=This device has a passkey of this account already.');
  await devices.send('WebAuthn.removeVirtualAuthenticator', { authenticatorId: first });
  await authenticator();
  await addPasskey('second');
  await page.waitForURL('**/account/second-factors?done=factor-added');
  expect(await page.locator('ul.sessions li').count()).toBe(2);
});

it('proves with a passkey who uses the session', async () => {
  await authenticator();
  await signIn();
  await page.waitForURL('**/account');
  await addPasskey('laptop');
  await page.waitForSelector('ul.codes');
  test.clock.advance(16 * 60_000);
  await page.goto(`${home()}/account/second-factors/totp`);
  expect(await title()).toBe('Is it you?');
  await page.click('text=Use a passkey');
  await page.waitForURL('**/account/second-factors/totp');
  expect(await page.locator('svg.qr').count()).toBe(1);
  expect(complaints).toEqual([]);
});

it('takes an answer once, from its own origin, of a verified user, and of no copy', async () => {
  const authenticatorId = await authenticator();
  await signIn();
  await page.waitForURL('**/account');
  await addPasskey('laptop');
  await page.waitForSelector('ul.codes');
  // The answer is kept from the control plane, to be sent by hand.
  const answerTo = async (options: object, userVerification = 'required') => {
    await page.goto(`${home()}/account/prove`);
    return page.evaluate(
      `(async (options) => {
        const bytes = (text) => Uint8Array.from(atob(text.replace(/-/g, '+').replace(/_/g, '/')), (c) => c.charCodeAt(0));
        const publicKey = { ...options, challenge: bytes(options.challenge), userVerification: '${userVerification}',
          allowCredentials: options.allowCredentials.map((each) => ({ ...each, id: bytes(each.id) })) };
        return JSON.stringify(await navigator.credentials.get({ publicKey }));
      })(${JSON.stringify(options)})`,
    );
  };
  const begin = async () => {
    const { body } = await test.api.request<{ factor_token: string }>('POST', '/v1/auth/sign-in', {
      email: renter.email,
      password: PASSWORD,
    });
    return body.factor_token;
  };
  const ask = async (factor_token: string) =>
    (await test.api.post<{ options: object }>('/v1/auth/second-factor/passkey', { factor_token })).options;
  const give = async (factor_token: string, passkey: unknown) =>
    (await test.api.request<{ code?: string }>('POST', '/v1/auth/second-factor', { factor_token, passkey })).status;

  const [one, other] = [await begin(), await begin()];
  const [first, second] = [await ask(one), await ask(other)];
  const answer = await answerTo(first);
  // Another sign-in has another challenge.
  expect(await give(other, answer)).toBe(401);
  expect(await give(one, answer)).toBe(200);
  expect(await give(await begin(), answer)).toBe(401);
  // A challenge ends with the first answer.
  const late = await answerTo(second);
  expect(await give(other, late)).toBe(401);
  // A challenge that is asked for anew ends the one before.
  const again = await begin();
  const replaced = await answerTo(await ask(again));
  await ask(again);
  expect(await give(again, replaced)).toBe(401);
  // Its user was not verified.
  await devices.send('WebAuthn.setUserVerified', { authenticatorId, isUserVerified: false });
  const unverified = await begin();
  expect(await give(unverified, await answerTo(await ask(unverified), 'discouraged'))).toBe(401);
  await devices.send('WebAuthn.setUserVerified', { authenticatorId, isUserVerified: true });
  // A copy of the passkey has been used less often.
  const { credentials } = await devices.send('WebAuthn.getCredentials', { authenticatorId });
  const [copied] = credentials;
  if (!copied) throw new Error('no passkey');
  await devices.send('WebAuthn.removeCredential', { authenticatorId, credentialId: copied.credentialId });
  await devices.send('WebAuthn.addCredential', { authenticatorId, credential: { ...copied, signCount: 0 } });
  const copy = await begin();
  expect(await give(copy, await answerTo(await ask(copy)))).toBe(401);
});

it('takes none of another origin, or for another purpose', async () => {
  await authenticator();
  await signIn();
  await page.waitForURL('**/account');
  const token = (await context.cookies()).find(({ name }) => name === '__Host-gpurent')?.value ?? '';
  const api = test.api.as(token);
  const { options } = await api.post<{ options: { challenge: string } }>('/v1/me/second-factors/passkeys/options');
  await page.goto(`${home()}/account/second-factors/passkey`);
  const made = (challenge: string) =>
    page.evaluate(
      `(async (options) => {
        const bytes = (text) => Uint8Array.from(atob(text.replace(/-/g, '+').replace(/_/g, '/')), (c) => c.charCodeAt(0));
        const user = { ...options.user, id: bytes(options.user.id) };
        const publicKey = { ...options, challenge: bytes(options.challenge), user, excludeCredentials: [] };
        return JSON.stringify(await navigator.credentials.create({ publicKey }));
      })(${JSON.stringify({ ...options, challenge })})`,
    );
  const add = async (passkey: unknown) =>
    (await api.request('POST', '/v1/me/second-factors/passkeys', { passkey, name: 'x' })).status;
  expect(await add(await made('AAAA'))).toBe(401);
  const answer = (await made(options.challenge)) as string;
  const foreign = JSON.parse(answer) as { response: { clientDataJSON: string } };
  const data = Buffer.from(foreign.response.clientDataJSON, 'base64url').toString();
  const elsewhere = Buffer.from(data.replace('localhost', 'evil.example')).toString('base64url');
  const moved = { ...foreign, response: { ...foreign.response, clientDataJSON: elsewhere } };
  expect(await add(JSON.stringify(moved))).toBe(401);
  // Its challenge was answered.
  expect(await add(answer)).toBe(401);
  const anew = await api.post<{ options: { challenge: string } }>('/v1/me/second-factors/passkeys/options');
  expect(await add(await made(anew.options.challenge))).toBe(201);
});

it('says what is missing without its script, and where the user refuses', async () => {
  await authenticator();
  await signIn();
  await page.waitForURL('**/account');
  const plain = await openContext(browser, { javaScriptEnabled: false });
  await plain.addCookies(await context.cookies());
  const still = await plain.newPage();
  await still.goto(`${home()}/account/second-factors/passkey`);
  expect(await still.textContent('[role=alert]')).toContain('Passkeys need the script of this page');
  expect(await still.isDisabled('fieldset button')).toBe(true);
  await plain.close();
  await page.goto(`${home()}/account/second-factors/passkey`);
  await page.evaluate('navigator.credentials.create = () => Promise.reject(new DOMException("no", "NotAllowedError"))');
  await page.fill('#name', 'x');
  await page.click('text=Add a passkey >> nth=-1');
  await page.waitForSelector('text=The browser has given no passkey. Try again.');
  expect(await problem()).toBe('The browser has given no passkey. Try again.');
});
