import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { textOf, type Browser, type Shown } from '../harness/browser.js';
import { begin, browserAt, comeBack, returnUrl, setCompany } from '../harness/companies.js';
import { TestControlPlane } from '../harness/control-plane.js';
import { pretendFull } from '../harness/full-disk.js';
import { TestIssuer, type Person } from '../harness/issuer.js';

const ALICE: Person = { sub: 'alice', email: 'alice@acme.example', email_verified: true, name: 'Alice' };

let test: TestControlPlane;
let issuer: TestIssuer;
let terse: TestIssuer;
let browser: Browser;
let restore: () => void;

beforeAll(async () => {
  test = await TestControlPlane.start();
  issuer = await TestIssuer.start([returnUrl(test), returnUrl(test, 'other')]);
  terse = await TestIssuer.start([returnUrl(test)], { isTerse: true });
  await setCompany(test, issuer.url);
  restore = test.snapshot();
});
beforeEach(() => {
  browser = browserAt(test);
});
afterEach(() => restore());
afterAll(async () => {
  await test.stop();
  await Promise.all([issuer.stop(), terse.stop()]);
});

const pathOf = ({ url }: Shown) => new URL(url).pathname + new URL(url).search;
const problemOf = ({ text }: Shown) => textOf(/<div class="problem" role="alert">.*?<\/div>/s.exec(text)?.[0] ?? '');

async function signIn(person = ALICE, visitor = browser, from = issuer): Promise<Shown> {
  return comeBack(visitor, await from.signIn(await begin(visitor), person));
}

interface Me {
  user: { id: string; email: string; name: string };
  memberships: { organization_id: string; name: string; role: string }[];
}

async function whoIs(visitor = browser): Promise<Me> {
  const { ['__Host-gpurent']: token } = await visitor.cookies();
  return test.api.as(token).get<Me>('/v1/me');
}

describe("a company's sign-in", () => {
  it('creates an account at the first time, and finds it by its subject then', async () => {
    const shown = await signIn();
    expect([shown.status, pathOf(shown)]).toEqual([200, '/account']);
    const first = await whoIs();
    expect(first.user).toMatchObject({ email: 'alice@acme.example', name: 'Alice' });
    expect(first.memberships).toMatchObject([{ name: "Alice's organization", role: 'admin' }]);
    const again = browserAt(test);
    await signIn({ ...ALICE, email: 'alice.married@acme.example', name: 'Alice M.' }, again);
    expect((await whoIs(again)).user).toEqual(first.user);
  });

  it('creates no account while the disk is full, and finds one', async () => {
    await signIn(ALICE, browserAt(test));
    const makeRoom = pretendFull(test.core);
    const [newcomer, known] = [browserAt(test), browserAt(test)];
    const stranger = { ...ALICE, sub: 'new', email: 'new@acme.example', name: 'New' };
    const refused = await signIn(stranger, newcomer);
    expect(refused.status).toBe(503);
    expect(await newcomer.cookies()).not.toHaveProperty('__Host-gpurent');
    await signIn(ALICE, known);
    expect((await whoIs(known)).user.email).toBe('alice@acme.example');
    makeRoom();
    await signIn(stranger, newcomer);
    expect((await whoIs(newcomer)).user.email).toBe('new@acme.example');
  });

  it('is offered on the page to sign in, and leads back to where it was asked for', async () => {
    const page = await browser.open('/sign-in?return_to=%2Faccount%2Fpassword');
    expect(textOf(page.text)).toContain('Sign in with Acme');
    const link = /href="(\/sign-in\/company\/acme\/start[^"]*)"/.exec(page.text)?.[1] ?? '';
    const sent = await browser.send(link.replaceAll('&amp;', '&'), { isNavigation: true });
    const shown = await comeBack(browser, await issuer.signIn(sent.headers.location ?? '', ALICE));
    expect(pathOf(shown)).toBe('/account/password');
  });

  it('is found by the domain where it is not named to everybody', async () => {
    await setCompany(test, issuer.url, { listed: false });
    const page = await browser.open('/sign-in');
    expect(page.text).not.toContain('Acme');
    const asked = await browser.open('/sign-in/company');
    const found = await browser.submit(asked, '/sign-in/company', { email: 'whoever@ACME.example' });
    expect(found.text).toContain('href="/sign-in/company/acme/start"');
    const unknown = await browser.submit(asked, '/sign-in/company', { email: 'whoever@sub.acme.example' });
    expect([unknown.status, problemOf(unknown)]).toEqual([404, 'No sign-in of a company is set up for this address.']);
  });

  it('asks with PKCE, a state and a nonce, and is told nothing of the browser', async () => {
    const address = new URL(await begin(browser));
    const { state, nonce, code_challenge, ...rest } = Object.fromEntries(address.searchParams);
    for (const secret of [state, nonce, code_challenge]) expect(secret).toMatch(/^.{43}$/);
    expect(rest).toMatchObject({
      response_type: 'code',
      code_challenge_method: 'S256',
      scope: 'openid email profile',
      redirect_uri: returnUrl(test),
    });
    const { ['__Host-gpurent-company']: secret = '' } = await browser.cookies();
    expect(secret).toMatch(/^[0-9a-f]{32}$/);
    expect(address.href).not.toContain(secret);
  });

  it('asks who is signed in at the company to sign in again, where that is wanted', async () => {
    const prompts = ['', '?again=yes'].map(async (parameters) => new URL(await begin(browser, 'acme', parameters)));
    expect((await Promise.all(prompts)).map(({ searchParams }) => searchParams.get('prompt'))).toEqual([null, 'login']);
  });

  it('asks an issuer for the address that tells it only so', async () => {
    await setCompany(test, terse.url);
    await signIn(ALICE, browser, terse);
    expect((await whoIs()).user.email).toBe('alice@acme.example');
    expect(terse.asked).toContain('/me');
  });

  it('asks an issuer for its metadata once, for many sign-ins', async () => {
    await setCompany(test, issuer.url);
    for (let time = 0; time < 3; time++) await begin(browserAt(test));
    test.clock.advance(3_600_001);
    const before = issuer.asked.length;
    for (let time = 0; time < 3; time++) await begin(browserAt(test));
    expect(issuer.asked.length - before).toBe(1);
  });

  it('makes new accounts members of the organization of their domain', async () => {
    const { organizationId } = await test.renter(0);
    const domain = { domain: 'acme.example', organization_id: organizationId, role: 'member' };
    await setCompany(test, issuer.url, { domains: [domain] });
    await signIn();
    expect((await whoIs()).memberships).toMatchObject([{ organization_id: organizationId, role: 'member' }]);
  });

  it('of a person who is signed in ends the session that the browser had', async () => {
    await signIn();
    const before = (await browser.cookies())['__Host-gpurent'];
    await signIn({ ...ALICE, sub: 'bob', email: 'bob@acme.example' });
    expect((await whoIs()).user.email).toBe('bob@acme.example');
    expect((await test.api.as(before).request('GET', '/v1/me')).status).toBe(401);
  });
});

describe('a return from a company', () => {
  it('counts once', async () => {
    const address = await issuer.signIn(await begin(browser), ALICE);
    expect((await comeBack(browser, address)).status).toBe(200);
    const again = await comeBack(browser, address);
    expect([again.status, problemOf(again)]).toEqual([
      400,
      'This sign-in was used, has expired, or began in another browser; begin the sign-in again.',
    ]);
  });

  it('counts only in the browser that has begun', async () => {
    const attacker = browserAt(test);
    const address = await issuer.signIn(await begin(attacker), ALICE);
    const victim = browserAt(test);
    expect((await comeBack(victim, address)).status).toBe(400);
    await begin(victim);
    expect((await comeBack(victim, address)).status).toBe(400);
    expect(await victim.cookies()).not.toHaveProperty('__Host-gpurent');
    expect((await comeBack(attacker, address)).status).toBe(200);
  });

  it('counts for ten minutes, and not after a restart', async () => {
    const address = await issuer.signIn(await begin(browser), ALICE);
    test.clock.advance(600_000);
    expect((await comeBack(browser, address)).status).toBe(400);
    const second = await issuer.signIn(await begin(browser), ALICE);
    await test.restart();
    expect((await comeBack(browser, second)).status).toBe(400);
  });

  it('with the code of somebody else is refused by the issuer, because of PKCE', async () => {
    const stolen = new URL(await issuer.signIn(await begin(browserAt(test)), ALICE));
    const own = new URL(await issuer.signIn(await begin(browser), { sub: 'mallory' }));
    own.searchParams.set('code', stolen.searchParams.get('code') ?? '');
    const shown = await comeBack(browser, own.href);
    expect([shown.status, problemOf(shown)]).toEqual([
      400,
      'The answer of the company is not valid; its reason is in the log of the operator; begin the sign-in again.',
    ]);
    expect(test.logged(40).join()).toContain('invalid_grant');
  });

  it('with a state that nobody has begun is refused', async () => {
    const address = new URL(await issuer.signIn(await begin(browser), ALICE));
    address.searchParams.set('state', 'A'.repeat(43));
    expect((await comeBack(browser, address.href)).status).toBe(400);
    address.searchParams.delete('state');
    expect((await comeBack(browser, address.href)).status).toBe(400);
  });

  it('from one company is none from another', async () => {
    await setCompany(test, terse.url, { id: 'other', domains: [{ domain: 'other.example' }] });
    const address = new URL(await issuer.signIn(await begin(browser), ALICE));
    address.pathname = address.pathname.replace('acme', 'other');
    expect((await comeBack(browser, address.href)).status).toBe(400);
  });

  it('of somebody who has refused says so', async () => {
    const { searchParams } = new URL(await begin(browser));
    const back = new URL(returnUrl(test));
    const denied = { error: 'access_denied', error_description: '<b>no</b>', iss: issuer.url };
    for (const [name, value] of Object.entries({ ...denied, state: searchParams.get('state') ?? '' }))
      back.searchParams.set(name, value);
    const shown = await comeBack(browser, back.href);
    expect([shown.status, problemOf(shown)]).toEqual([403, 'The company has not signed you in.']);
    expect(shown.text).toContain('<a href="/sign-in">');
    expect(shown.text).not.toContain('no</b>');
  });

  it('is not used up by a request that only looks', async () => {
    const address = await issuer.signIn(await begin(browser), ALICE);
    const { pathname, search } = new URL(address);
    expect((await browser.send(pathname + search, { method: 'HEAD' })).status).toBe(405);
    expect((await comeBack(browser, address)).status).toBe(200);
  });
});

describe('what a company says of an address', () => {
  it.each([
    ['is not verified', { ...ALICE, email_verified: false }, /has not verified your e-mail address/],
    ['is of another domain', { ...ALICE, email: 'alice@bank.example' }, /may not speak for addresses of bank\.example/],
    ['is of a domain below', { ...ALICE, email: 'alice@x.acme.example' }, /may not speak for addresses of x\.acme/],
    ['is missing', { sub: 'alice' }, /has named no e-mail address/],
    ['has a letter that looks alike', { ...ALICE, email: 'alice@acme.еxample' }, /has named no e-mail address/],
    ['has two domains', { ...ALICE, email: 'a@bank.example@acme.example' }, /has named no e-mail address/],
  ])('counts for nothing if it %s', async (_why, person, words) => {
    const before = test.dump();
    const shown = await signIn(person);
    expect([shown.status, problemOf(shown)]).toEqual([403, expect.stringMatching(words)]);
    expect(test.dump()).toEqual(before);
    expect(await browser.cookies()).not.toHaveProperty('__Host-gpurent');
  });

  it('counts without being called verified only where an operator accepts those of its domain, until the accounts are linked', async () => {
    const { sub, email, name } = ALICE;
    const silent = { sub, email, name } as Person;
    expect(problemOf(await signIn(silent))).toMatch(/send the claim email_verified/);
    const accepting = { domains: [{ domain: 'acme.example', accept_unverified: true }] };
    await setCompany(test, issuer.url, accepting);
    expect(problemOf(await signIn({ ...silent, email_verified: false }))).toMatch(/has not verified/);
    expect((await signIn(silent)).status).toBe(200);
    expect((await whoIs()).user.email).toBe(email);
    // Who is linked is found by the subject, whatever is accepted later.
    await setCompany(test, issuer.url);
    const again = browserAt(test);
    expect((await signIn(silent, again)).status).toBe(200);
    expect((await whoIs(again)).user.email).toBe(email);
  });
});
