import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { HOUR_MS, MINUTE_MS } from '../../shared/time.js';
import { MOST_TRIES, RenewalTries } from '../../control-plane/services/identity/sign-in/renew-session.js';
import { exchange, textOf, type Browser, type Shown } from '../harness/browser.js';
import { begin, browserAt, comeBack, returnUrl, setCompany } from '../harness/companies.js';
import { CompanyPeople, SESSION_HOURS } from '../harness/company-people.js';
import { TestControlPlane } from '../harness/control-plane.js';
import { TestIssuer } from '../harness/issuer.js';
import { LyingIssuer } from '../harness/lying-issuer.js';
import { addApp, nextCode } from '../harness/second-factors.js';

let test: TestControlPlane;
let issuer: LyingIssuer;
let people: CompanyPeople;
let alice: Browser;
let organizationId: string;
let restore: () => void;

beforeAll(async () => {
  test = await TestControlPlane.start();
  issuer = await LyingIssuer.start();
  people = new CompanyPeople(test, issuer);
  ({ organizationId } = await test.renter(0));
  await people.setUp(organizationId);
  restore = test.snapshot();
});
beforeEach(async () => {
  await test.signInOperator();
  alice = await people.signIn('alice');
});
afterEach(() => {
  restore();
  issuer.repent();
});
afterAll(async () => {
  await test.stop();
  await issuer.stop();
});

const pathOf = ({ url }: Shown) => new URL(url).pathname + new URL(url).search;
const tokenOf = async (browser: Browser) => (await browser.cookies())['__Host-gpurent'];

describe('a session of a company', () => {
  it('ends at its length, whatever its use', async () => {
    for (let hour = 1; hour < SESSION_HOURS; hour++) {
      test.clock.advance(HOUR_MS);
      expect(await people.status(alice)).toBe(200);
    }
    test.clock.advance(HOUR_MS);
    expect(await people.status(alice)).toBe(401);
    const shown = await alice.open('/account');
    expect(pathOf(shown)).toBe('/sign-in?return_to=%2Faccount');
    expect(textOf(shown.text)).toContain('Sign in with Acme');
  });

  it('lasts as long as any other where no length is set, and is not renewed', async () => {
    await people.setUp(organizationId, { session_hours: null });
    const browser = await people.signIn('alice');
    test.clock.advance(29 * 24 * HOUR_MS);
    expect(await people.open(browser)).toBeUndefined();
    expect(await people.status(browser)).toBe(200);
  });

  it('ends no API key', async () => {
    const key = { name: 'ci', kind: 'personal' };
    const { secret } = await (await people.api(alice)).post<{ secret: string }>('/v1/api-keys', key);
    test.clock.advance(SESSION_HOURS * HOUR_MS);
    expect(await people.status(alice)).toBe(401);
    expect((await test.api.as(secret).request('GET', '/v1/instances')).status).toBe(200);
  });

  it('of somebody with a second factor ends like any other of the company', async () => {
    const app = await addApp(test, await people.api(alice));
    const browser = browserAt(test);
    people.become('alice');
    const asked = await comeBack(browser, issuer.signIn(await begin(browser)));
    await browser.submit(asked, '/sign-in/second-factor', { code: nextCode(test, app) });
    expect(await people.status(browser)).toBe(200);
    test.clock.advance(SESSION_HOURS * HOUR_MS);
    expect(await people.status(browser)).toBe(401);
  });

  it('gives its end to the session of a program that is approved in it', async () => {
    const api = await people.api(alice);
    const code = await test.api.post<{ device_code: string; user_code: string }>('/v1/auth/device', { name: 'cli' });
    test.clock.advance(MINUTE_MS);
    const { id } = await api.post<{ id: string }>('/v1/me/device-codes', { user_code: code.user_code });
    await api.post(`/v1/me/device-codes/${id}/approve`);
    const asked = { device_code: code.device_code };
    const { token } = await test.api.post<{ token: string }>('/v1/auth/device/token', asked);
    expect((await test.api.as(token).request('GET', '/v1/me')).status).toBe(200);
    test.clock.advance(SESSION_HOURS * HOUR_MS - MINUTE_MS);
    expect((await test.api.as(token).request('GET', '/v1/me')).status).toBe(401);
  });

  it('gives its end to the session of a link that is made in it', async () => {
    const { token: link } = await (await people.api(alice)).post<{ token: string }>('/v1/auth/sign-in-link');
    const other = browserAt(test);
    await other.submit(await other.open('/sign-in/link'), '/sign-in/link', { token: link });
    expect(await people.status(other)).toBe(200);
    test.clock.advance(SESSION_HOURS * HOUR_MS);
    expect(await people.status(other)).toBe(401);
  });
});

describe('a silent renewal', () => {
  it('leads through the issuer once half of the time is over, and back to the page', async () => {
    test.clock.advance((SESSION_HOURS / 2) * HOUR_MS - 1);
    expect(await people.open(alice)).toBeUndefined();
    test.clock.advance(1);
    const next = (await people.open(alice, '/account/companies?done=company-linked')) ?? '';
    const asked = Object.fromEntries(new URL(next).searchParams);
    expect(asked).toMatchObject({ prompt: 'none', login_hint: 'alice@acme.example', redirect_uri: returnUrl(test) });
    expect(next).not.toContain('companies');
    const token = await tokenOf(alice);
    expect(pathOf(await comeBack(alice, issuer.signIn(next)))).toBe('/account/companies?done=company-linked');
    expect(await tokenOf(alice)).toBe(token);
    test.clock.advance(SESSION_HOURS * HOUR_MS - 1);
    expect(await people.status(alice)).toBe(200);
    test.clock.advance(1);
    expect(await people.status(alice)).toBe(401);
  });

  it('is no proof of who sits at the browser', async () => {
    await comeBack(alice, issuer.signIn(await people.openLate(alice)));
    expect(pathOf(await alice.open('/account/second-factors/totp'))).toMatch(/^\/account\/prove\?/);
  });

  it('is begun only by a page that a person opens', async () => {
    test.clock.advance((SESSION_HOURS / 2) * HOUR_MS);
    const page = await alice.send('/account', {});
    expect(page.status).toBe(200);
    for (const headers of [
      { 'sec-fetch-dest': 'iframe' },
      { 'sec-fetch-mode': 'no-cors' },
      { 'sec-fetch-mode': 'cors', 'sec-fetch-dest': 'empty' },
      { 'sec-purpose': 'prefetch' },
      { authorization: `Bearer ${await tokenOf(alice)}` },
    ])
      expect((await alice.send('/account', { isNavigation: true, headers })).status).toBe(200);
    expect((await alice.send('/account', { isNavigation: true, method: 'HEAD' })).status).not.toBe(303);
    const api = await alice.send('/v1/me', { isNavigation: true, headers: { 'x-same-origin': '1' } });
    expect(api.status).not.toBe(303);
    expect(await people.open(alice)).toBeDefined();
  });

  it('is not begun where the operator has not said so', async () => {
    await people.setUp(organizationId, { renews_sessions: false });
    test.clock.advance((SESSION_HOURS / 2) * HOUR_MS);
    expect(await people.open(alice)).toBeUndefined();
  });

  it('is not begun for a session that a password has opened', async () => {
    const renter = await test.renter(0);
    const browser = browserAt(test);
    const typed = { email: renter.email, password: 'a renter password' };
    await browser.submit(await browser.open('/sign-in'), '/sign-in', typed);
    test.clock.advance(29 * 24 * HOUR_MS);
    expect(await people.open(browser)).toBeUndefined();
    expect(await people.status(browser)).toBe(200);
  });

  it.each(['login_required', 'interaction_required', 'consent_required', 'account_selection_required', 'server_error'])(
    'that the issuer answers with %s leaves the session until its end, and is tried again only after 15 minutes',
    async (error) => {
      const shown = await people.refuse(alice, error);
      expect(pathOf(shown)).toBe('/account');
      expect(shown.status).toBe(200);
      test.clock.advance(15 * MINUTE_MS - 1);
      expect(await people.open(alice)).toBeUndefined();
      test.clock.advance(1);
      expect(await people.open(alice)).toBeDefined();
      test.clock.advance(HOUR_MS * (SESSION_HOURS / 2) - 15 * MINUTE_MS - 1);
      expect(await people.status(alice)).toBe(200);
      test.clock.advance(1);
      expect(await people.status(alice)).toBe(401);
    },
  );

  it('that nobody is asked in a real issuer ends with login_required, and the page opens', async () => {
    const real = await TestIssuer.start([returnUrl(test)]);
    await setCompany(test, real.url, { session_hours: SESSION_HOURS, renews_sessions: true });
    const browser = browserAt(test);
    const carol = { sub: 'carol', email: 'carol@acme.example', email_verified: true };
    await comeBack(browser, await real.signIn(await begin(browser), carol));
    test.clock.advance((SESSION_HOURS / 2) * HOUR_MS);
    const sent = await browser.send('/account', { isNavigation: true });
    const back = await real.signIn(sent.headers.location ?? '', carol);
    expect(new URL(back).searchParams.get('error')).toBe('login_required');
    expect(pathOf(await comeBack(browser, back))).toBe('/account');
    expect(await people.status(browser)).toBe(200);
    await real.stop();
  });

  it('leads nowhere while the issuer does not answer, also shortly after it did', async () => {
    test.clock.advance((SESSION_HOURS / 2) * HOUR_MS - 5 * MINUTE_MS);
    await begin(browserAt(test));
    test.clock.advance(5 * MINUTE_MS);
    issuer.intercept = (_request, response) => {
      response.destroy();
      return true;
    };
    expect((await alice.open('/account')).status).toBe(200);
    expect(await people.status(alice)).toBe(200);
    // The control plane then asks it no more for five seconds.
    test.clock.advance(5_000);
  });

  it('of somebody else than the user leads to the sign-in page, and ends and renews nothing', async () => {
    await people.signIn('bob');
    const next = await people.openLate(alice, '/account/companies');
    people.become('bob');
    const shown = await comeBack(alice, issuer.signIn(next));
    expect(pathOf(shown)).toBe('/sign-in?done=company-another&return_to=%2Faccount%2Fcompanies');
    expect(textOf(shown.text)).toContain('Another account than yours is signed in at your company.');
    expect(await people.status(alice)).toBe(200);
    expect((await (await people.api(alice)).get<{ user: object }>('/v1/me')).user).toMatchObject({
      email: 'alice@acme.example',
    });
    test.clock.advance((SESSION_HOURS / 2) * HOUR_MS);
    expect(await people.status(alice)).toBe(401);
  });

  it('counts only in the browser and in the session that have begun it, and once', async () => {
    const back = issuer.signIn(await people.openLate(alice));
    const mallory = await people.signIn('mallory');
    people.become('alice');
    expect((await comeBack(mallory, back)).status).toBe(400);
    // Somebody else signs in with the same browser meanwhile.
    await people.signIn('bob', alice);
    people.become('alice');
    const before = test.dump();
    expect(pathOf(await comeBack(alice, back))).toBe('/account');
    expect(test.dump()).toEqual(before);
    expect((await comeBack(alice, back)).status).toBe(400);
  });

  it('leads to no other server', async () => {
    for (const path of ['/account?return_to=https://evil.example/', '/account?x=//evil.example']) {
      const browser = await people.signIn('alice');
      const shown = await comeBack(browser, issuer.signIn(await people.openLate(browser, path)));
      expect(new URL(shown.url).origin).toBe(browser.home);
      expect(pathOf(shown)).toBe(path);
    }
    test.clock.advance((SESSION_HOURS / 2) * HOUR_MS);
    const browser = await people.signIn('alice');
    test.clock.advance((SESSION_HOURS / 2) * HOUR_MS);
    for (const path of ['//evil.example/account', '/\\evil.example/account', '/account/..//evil.example'])
      expect(
        (await browser.send(`http://localhost${path}`, { isNavigation: true })).headers.location ?? '',
      ).not.toMatch(/evil/);
  });
});

describe('a page of the console', () => {
  const folder = mkdtempSync(join(tmpdir(), 'gpurent-console-'));
  let own: TestControlPlane;
  let staff: CompanyPeople;
  beforeAll(async () => {
    mkdirSync(join(folder, 'assets'));
    writeFileSync(join(folder, 'index.html'), '<html><body><div id="root"></div></body></html>');
    own = await TestControlPlane.start({ consoleFolder: folder });
    staff = new CompanyPeople(own, issuer);
    await staff.setUp((await own.renter(0)).organizationId);
  });
  afterAll(async () => {
    await own.stop();
    rmSync(folder, { recursive: true });
  });

  it('leads through the issuer, and back to where the person was', async () => {
    for (const path of ['/', '/instances?status=running', '/billing/caps']) {
      const browser = await staff.signIn('alice', browserAt(own));
      const shown = await comeBack(browser, issuer.signIn(await staff.openLate(browser, path)));
      expect([shown.status, pathOf(shown)]).toEqual([200, path]);
      expect(shown.text).toContain('<div id="root">');
    }
  });

  it('is kept by no browser while it leads there, and is begun by no script', async () => {
    const browser = await staff.signIn('alice', browserAt(own));
    own.clock.advance((SESSION_HOURS / 2) * HOUR_MS);
    expect((await browser.send('/instances', {})).status).toBe(200);
    const { status, headers } = await browser.send('/instances', { isNavigation: true });
    expect([status, headers['cache-control']]).toEqual([303, 'no-store']);
    expect((await browser.send('/instances', { isNavigation: true })).status).toBe(200);
  });

  it('leads to no other server', async () => {
    const browser = await staff.signIn('alice', browserAt(own));
    own.clock.advance((SESSION_HOURS / 2) * HOUR_MS);
    const { port } = new URL(own.url);
    const { ['__Host-gpurent']: token = '' } = await browser.cookies();
    const headers = {
      host: `localhost:${port}`,
      cookie: `__Host-gpurent=${token}`,
      'sec-fetch-mode': 'navigate',
      'sec-fetch-dest': 'document',
    };
    const leadsTo = async (pathname: string) => {
      const raw = { pathname, search: '', href: browser.home + pathname };
      return (await exchange(Number(port), raw, { method: 'GET', headers })).headers.location;
    };
    const elsewhere = ['//evil.example/..', '/.//evil.example', '/\\\\evil.example', '/instances/../..//evil.example'];
    for (const path of elsewhere) expect([path, await leadsTo(path)]).toEqual([path, undefined]);
    expect(await leadsTo('/instances/..')).toContain(issuer.url);
  });
});

it('remembers a bounded number of tries', () => {
  let now = 0;
  const tries = new RenewalTries({ monotonic: () => now });
  expect(tries.take('first')).toBe(true);
  expect(tries.take('first')).toBe(false);
  for (let index = 0; index < MOST_TRIES; index++) tries.take(`other ${index}`);
  expect(tries.take('first')).toBe(true);
  now = 15 * MINUTE_MS;
  expect(tries.take('first')).toBe(true);
});
