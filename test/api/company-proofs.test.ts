import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { MINUTE_MS } from '../../shared/time.js';
import type { Browser, Shown } from '../harness/browser.js';
import { begin, browserAt, comeBack, returnUrl, setCompany } from '../harness/companies.js';
import { TestControlPlane, type Renter } from '../harness/control-plane.js';
import { TestIssuer, type Person } from '../harness/issuer.js';
import { addApp, nextCode } from '../harness/second-factors.js';

const PASSWORD = 'a renter password';

let test: TestControlPlane;
let issuer: TestIssuer;
let renter: Renter;
let browser: Browser;

beforeAll(async () => {
  test = await TestControlPlane.start();
  issuer = await TestIssuer.start([returnUrl(test)]);
  await setCompany(test, issuer.url, { domains: [{ domain: 'example.com' }] });
});
beforeEach(async () => {
  renter = await test.renter(0);
  browser = browserAt(test);
});
afterAll(async () => {
  await test.stop();
  await issuer.stop();
});

const pathOf = ({ url }: Shown) => new URL(url).pathname + new URL(url).search;
const personOf = ({ email }: { email: string }): Person => ({ sub: `sub of ${email}`, email, email_verified: true });
const linkIn = ({ text }: Shown, words: string) =>
  new RegExp(`href="([^"]*)"[^>]*>${words}`).exec(text)?.[1]?.replaceAll('&amp;', '&') ?? '';

async function signInAtCompany(person: Person, visitor = browser, parameters = ''): Promise<Shown> {
  return comeBack(visitor, await issuer.signIn(await begin(visitor, 'acme', parameters), person));
}

async function signIn({ email }: { email: string }, visitor = browser, from = '/sign-in'): Promise<Shown> {
  return visitor.submit(await visitor.open(from), '/sign-in', { email, password: PASSWORD });
}

/** Links the renter's account by its own sign-in. */
async function linked(visitor = browser): Promise<void> {
  const known = await signInAtCompany(personOf(renter), visitor);
  const page = await signIn(renter, visitor, linkIn(known, 'Sign in to this account'));
  await visitor.submit(page, '/account/companies/link');
}

describe('an account', () => {
  it('is linked and unlinked only within 15 minutes after a proof', async () => {
    await signIn(renter);
    test.clock.advance(15 * MINUTE_MS + 1);
    const asked = await signInAtCompany(personOf(renter), browser, '?link=yes');
    expect(pathOf(asked)).toMatch(/^\/account\/prove\?return_to=%2Faccount%2Fcompanies%2Flink%3Ftoken%3D[0-9a-f]{32}$/);
    const proven = await browser.submit(asked, '/account/prove', { password: PASSWORD });
    const done = await browser.submit(proven, '/account/companies/link');
    expect(pathOf(done)).toBe('/account/companies?done=company-linked');
    test.clock.advance(15 * MINUTE_MS + 1);
    expect(pathOf(await browser.submit(done, '/account/companies/unlink'))).toMatch(/^\/account\/prove\?/);
    const { items } = await renter.api.get<{ items: { id: string }[] }>('/v1/me/identities');
    const refused = await renter.api.request('DELETE', `/v1/me/identities/${items[0]?.id}`);
    expect(refused).toMatchObject({ status: 403, body: { code: 'PROOF_REQUIRED' } });
  });

  it('with a second factor asks for it after the sign-in at the company', async () => {
    await linked();
    const app = await addApp(test, renter.api);
    const other = browserAt(test);
    const asked = await signInAtCompany(personOf(renter), other, '?return_to=%2Faccount%2Fpassword');
    expect(pathOf(asked)).toBe('/sign-in/second-factor?return_to=%2Faccount%2Fpassword');
    expect(await other.cookies()).not.toHaveProperty('__Host-gpurent');
    const done = await other.submit(asked, '/sign-in/second-factor', { code: nextCode(test, app) });
    expect(pathOf(done)).toBe('/account/password');
    const api = test.api.as((await other.cookies())['__Host-gpurent']);
    expect(await api.get('/v1/me')).toMatchObject({ user: { id: renter.userId } });
  });

  it('without a password proves who it is at the company', async () => {
    await signInAtCompany(personOf({ email: 'alice@example.com' }));
    test.clock.advance(15 * MINUTE_MS + 1);
    const page = await browser.open('/account/second-factors/totp');
    expect(pathOf(page)).toBe('/account/prove?return_to=%2Faccount%2Fsecond-factors%2Ftotp');
    const start = linkIn(page, 'Sign in again with Acme');
    expect(start).toBe('/sign-in/company/acme/start?again=yes&return_to=%2Faccount%2Fsecond-factors%2Ftotp');
    const parameters = new URL(start, browser.home).search;
    const back = await signInAtCompany(personOf({ email: 'alice@example.com' }), browser, parameters);
    expect(pathOf(back)).toBe('/account/second-factors/totp');
  });
});
